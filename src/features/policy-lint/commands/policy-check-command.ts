import { valuesOf } from '../../../core/contract/policy/pins.js';
import { formatLintMessage } from '../lint-rules.js';
import { formatFinding, type PolicyCheck } from '../../../core/policy/files/check-policy.js';
import { buildPolicyMatrix, type MatrixCell } from '../policy-matrix.js';
import {
  readEarlierAcceptances,
  collectLintErrors,
  findAcceptanceReason,
  type FileLintMessage,
} from './accepted-lint-messages.js';
import { defineCommand, NO_OPERANDS, type CliCommand } from '../../../interfaces/cli/command.js';
import {
  findContractFolder,
  loadContract,
  REGISTRATIONS_OPTION,
  readRegistrations,
  displayPath,
} from '../../../interfaces/cli/options/folders.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { escapeText, jsonLine, createPainter, table, type Paint } from '../../../interfaces/cli/text/terminal.js';

/** `turnpike policy check`: reports all findings in a policy, or all that it decides. */
export const policyCheck: CliCommand = defineCommand({
  name: 'policy check',
  access: 'none',
  summary: 'Lint a policy: print each finding with file, line and rule; or print what it allows to each role',
  operands: NO_OPERANDS,
  options: [
    { name: 'matrix', help: 'print for every role, lane and action whether it is allowed, and the deciding rule' },
    REGISTRATIONS_OPTION,
  ],
  notes: [
    'Exits 1 if there is a finding, or a lint error that `turnpike policy pin` has not accepted. A file without a',
    'valid pin is not a finding; a warning on stderr names it. --matrix needs a policy without findings. It shows the',
    'decisions for runs with every scope field set and without approvals; `*` stands for all actions that the same',
    'role and lane do not list. `depends` stands for what call rules of the lane or conditions decide by arguments.',
    'With --json: one line for every role, lane and action.',
  ],
  async run(args, io) {
    const contract = findContractFolder(args, io);
    const loaded = await loadContract(contract, io, { registrations: await readRegistrations(args, io) });
    const { files, identities, check } = loaded;
    const accepted = await readEarlierAcceptances(contract.path);
    const cautions = collectLintErrors(loaded, io).map((caution) => ({
      ...caution,
      accepted: findAcceptanceReason(caution, accepted),
    }));
    const { matrix, json } = args.values;
    if (matrix && check.policy !== null) {
      await printMatrix(buildPolicyMatrix(check.policy), json, io);
    } else {
      await printFindings({ ...check, cautions }, json, displayPath(contract.path, io), io);
    }
    const all = [...valuesOf(files), ...(identities === null ? [] : [identities])];
    for (const { path, pin } of all) {
      if (!('problem' in pin)) continue;
      await io.stderr.writeLine(
        `${escapeText(displayPath(path, io))} is not pinned (${pin.problem}): runs are denied until it is committed, or pinned by \`turnpike policy pin\``,
      );
    }
    const errors = cautions.filter(({ severity, accepted: reason }) => severity === 'error' && reason === null);
    return check.findings.length + errors.length === 0 ? 0 : 1;
  },
});

/** A lint error, with the reason for which an operator accepted it, or null. */
interface JudgedLintMessage extends FileLintMessage {
  readonly accepted: string | null;
}
interface CheckFindings extends PolicyCheck {
  readonly cautions: readonly JudgedLintMessage[];
}

async function printFindings({ findings, cautions }: CheckFindings, json: boolean, where: string, { stdout }: Io) {
  for (const finding of findings)
    await stdout.write(json ? jsonLine(finding) : `${escapeText(formatFinding(finding))}\n`);
  for (const caution of cautions) {
    const line = `${formatLintMessage(caution)}${caution.accepted === null ? '' : ` (accepted: ${caution.accepted})`}`;
    await stdout.write(json ? jsonLine(caution) : `${escapeText(line)}\n`);
  }
  if (!json && findings.length + cautions.length === 0)
    await stdout.write(`ok: the policy of ${escapeText(where)} has no findings\n`);
}

async function printMatrix(cells: readonly MatrixCell[], json: boolean, io: Io): Promise<void> {
  if (json) for (const cell of cells) await io.stdout.write(jsonLine(cell));
  else await io.stdout.write(matrixText(cells, createPainter(io.colours)));
}

/** For each role and lane, the most frequent rule is printed once, as `*`. */
function matrixText(cells: readonly MatrixCell[], paint: Paint): string {
  const pairs = groupCells(cells, ({ role_id, lane_id }) => JSON.stringify([role_id, lane_id]));
  const rows = pairs.flatMap((pair) => {
    const common = findCommonDenial(pair);
    const shownCells = pair.filter((cell) => cell.rule_id !== common?.rule_id);
    return common === null ? shownCells : [...shownCells, { ...common, act: '*' }];
  });
  return table(
    rows.map(({ role_id, lane_id, act, decision, rule_id }) => [
      { text: escapeText(role_id), colour: 'bold' as const },
      { text: escapeText(lane_id) },
      { text: escapeText(act) },
      { text: decision, colour: decision === 'allow' ? ('green' as const) : ('yellow' as const) },
      { text: escapeText(rule_id) },
    ]),
    paint,
  );
}

function findCommonDenial(pair: readonly MatrixCell[]): MatrixCell | null {
  const denied = pair.filter(({ decision }) => decision === 'deny');
  const [most] = groupCells(denied, ({ rule_id }) => rule_id).toSorted((a, b) => b.length - a.length);
  return most?.[0] ?? null;
}

function groupCells(cells: readonly MatrixCell[], keyOf: (cell: MatrixCell) => string): readonly MatrixCell[][] {
  const groups = new Map<string, MatrixCell[]>();
  for (const cell of cells) {
    const group = groups.get(keyOf(cell));
    if (group === undefined) groups.set(keyOf(cell), [cell]);
    else group.push(cell);
  }
  return [...groups.values()];
}
