import { createCatalogue } from '../../../core/contract/policy/catalogue.js';
import { checkPolicy } from '../../../core/policy/files/check-policy.js';
import { NO_OPERANDS, type CliCommand } from '../../../interfaces/cli/command.js';
import {
  findContractFolder,
  loadContract,
  readRegistrations,
  REGISTRATIONS_OPTION,
  requireValidPolicy,
} from '../../../interfaces/cli/options/folders.js';
import { jsonLine } from '../../../interfaces/cli/text/terminal.js';

/** `turnpike policy schema`: prints the types by which conditions are checked. */
export const policySchema: CliCommand = {
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
    await io.stdout.write(args.flag('json') ? jsonLine(schema) : `${schemaToText(schema).trimEnd()}\n`);
    return 0;
  },
};
