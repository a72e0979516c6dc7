import { join } from 'node:path';
import { createCatalogue } from '../../../core/contract/policy/catalogue.js';
import { OPTIONAL_FILES } from '../../../core/contract/policy/pins.js';
import { PolicyError, usageError } from '../../../core/errors.js';
import { checkPolicy, formatFinding } from '../../../core/policy/files/check-policy.js';
import { defineCommand, NO_OPERANDS, type CliCommand, type CommandGroup } from '../../../interfaces/cli/command.js';
import {
  displayPath,
  findContractFolder,
  loadContract,
  readRegistrations,
  REGISTRATIONS_OPTION,
  requireValidPolicy,
} from '../../../interfaces/cli/options/folders.js';
import { escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';
import { readSmallFile, replaceFile } from '../../../system/files/small-file.js';

/** `turnpike policy schema`: prints the types by which conditions are checked. */
const policySchema: CliCommand = {
  name: 'policy schema',
  access: 'none',
  summary: 'Print the Cedar schema by which conditions are checked: actions, tools, tables and their arguments',
  operands: NO_OPERANDS,
  options: [REGISTRATIONS_OPTION],
  notes: [
    'The schema follows from the actions, the registered tools and tables, and the lanes. conditions.cedar need not',
    'exist. With --json: the same in the JSON format of Cedar.',
  ],
  async run(args, io) {
    const { schemaToText } = await import('../cedar.js');
    const { loadCounters } = await import('../counters/load-counters.js');
    const schemas = await import('../condition-schema.js');
    const registrations = await readRegistrations(args, io);
    const { files } = await loadContract(findContractFolder(args, io), io, { registrations });
    const catalogue = createCatalogue(registrations);
    const { lanes, roles, actions } = files;
    const policy = requireValidPolicy(checkPolicy({ lanes, roles, actions }, catalogue));
    const { counters } = files.counters === undefined ? {} : loadCounters(files.counters, catalogue, true);
    const shapes = { scope: schemas.scopeShape(policy.lanes.values()), counters: schemas.counterShape(counters?.all) };
    const schema = schemas.cedarSchemaOf(schemas.conditionActions(catalogue), shapes);
    await io.stdout.write(args.values.json ? jsonLine(schema) : `${schemaToText(schema).trimEnd()}\n`);
    return 0;
  },
};

/** `turnpike policy format`: formats conditions.cedar. */
const policyFormat: CliCommand = defineCommand({
  name: 'policy format',
  access: 'none',
  summary: 'Format conditions.cedar of a contract folder; comments stay',
  operands: NO_OPERANDS,
  options: [{ name: 'check', help: 'change nothing; exit 1 if the file is not formatted' }],
  notes: ['The conditions stay the same: if the formatted file said anything else, it would not be written.'],
  async run(args, io) {
    const { formatConditions } = await import('../format-conditions.js');
    const { CONDITION_BYTES_MAX } = await import('../condition-file.js');
    const folder = findContractFolder(args, io);
    if (!folder.isChosen) throw usageError('no contract folder: name one with --contract DIR');
    const path = join(folder.path, 'policy', OPTIONAL_FILES.conditions);
    const shown = displayPath(path, io);
    const bytes = readSmallFile(path, { bytesMax: CONDITION_BYTES_MAX });
    if (bytes === null) throw usageError(`${shown} does not exist`);
    const { text, findings } = formatConditions(shown, bytes);
    if (text === null) {
      throw new PolicyError({ code: 'POLICY_INVALID', message: findings.map(formatFinding).join('\n') });
    }
    const isFormatted = Buffer.from(text).equals(bytes);
    if (args.values.check) {
      await io.stdout.write(`${escapeText(shown)} is ${isFormatted ? '' : 'not '}formatted\n`);
      return isFormatted ? 0 : 1;
    }
    if (!isFormatted) replaceFile(path, text, 0o644);
    await io.stdout.write(`${escapeText(shown)} ${isFormatted ? 'is formatted' : 'was formatted'}\n`);
    return 0;
  },
});

export const CONDITION_COMMANDS: readonly CommandGroup[] = [
  { title: 'policy', commands: [policySchema, policyFormat] },
];
