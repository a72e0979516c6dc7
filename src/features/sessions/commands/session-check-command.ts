import { isVerifyTask, SPEC_BYTES_MAX, type SessionSpec } from '../contract/session-spec.js';
import { readSpec, type SpecFileFinding } from '../spec/read-spec.js';
import { structureHash } from '../rules/spec/spec-structure.js';
import type { CliCommand } from '../../../interfaces/cli/command.js';
import {
  findContractFolder,
  loadContract,
  REGISTRATIONS_OPTION,
  readRegistrations,
  requireValidPolicy,
} from '../../../interfaces/cli/options/folders.js';
import { readBeginning } from '../../../interfaces/cli/payloads.js';
import { countText, escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';

/** `turnpike session check`: checks whether a session can work through this spec to its end. */
export const sessionCheck: CliCommand = {
  name: 'session check',
  access: 'none',
  summary: 'Lint a spec: print each finding with file, line and rule',
  operands: { usage: 'SPEC', min: 1, max: 1 },
  options: [REGISTRATIONS_OPTION],
  notes: [
    'SPEC is a YAML file, or JSON if it begins with {; - reads stdin. The lanes are those of the contract folder.',
    'Needs no home directory and changes nothing. Exits 1 if the spec has an error; warnings do not count.',
  ],
  async run(args, io) {
    const [name = ''] = args.operands;
    const registrations = await readRegistrations(args, io);
    const { lanes } = requireValidPolicy(
      (await loadContract(findContractFolder(args, io), io, { registrations })).check,
    );
    const { findings, spec } = readSpec(await readBeginning(name, SPEC_BYTES_MAX + 1, io), new Set(lanes.keys()));
    const file = name === '-' ? 'stdin' : name;
    const json = args.values.json;
    for (const finding of findings) {
      await io.stdout.write(json ? jsonLine({ file, ...finding }) : `${escapeText(lineOf(file, finding))}\n`);
    }
    if (spec !== null && !json) await io.stdout.write(`${summaryText(spec)}\n`);
    return spec === null ? 1 : 0;
  },
};

const lineOf = (file: string, { line, severity, rule, message }: SpecFileFinding): string =>
  `${file}:${line} ${severity === 'warning' ? 'warning: ' : ''}${rule}: ${message}`;

/** Ids of a valid spec contain no characters that affect a terminal. */
function summaryText(spec: SessionSpec): string {
  const tasks = spec.phases.flatMap((phase) => phase.tasks);
  const verifications = tasks.filter(isVerifyTask).length;
  const gates = spec.phases.filter(({ gate }) => gate !== undefined).length;
  const phases = countText(spec.phases.length, 'phase');
  const kinds = `${tasks.length - verifications} to implement, ${verifications} to verify`;
  return `ok: ${spec.id} has ${phases}, ${countText(tasks.length, 'task')} (${kinds}) and ${countText(gates, 'gate')}\nstructure ${structureHash(spec)}`;
}
