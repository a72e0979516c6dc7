import type { JsonObject } from '../../../core/contract/json.js';
import type { ActionReport } from '../../../runtime/agents/action-reports.js';
import { commandUsageError, quoteArgument } from '../../../interfaces/cli/arguments.js';
import type { CliCommand } from '../../../interfaces/cli/command.js';
import { withHomeAccess } from '../../../interfaces/cli/home-access.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { parseJsonObject, readBeginning } from '../../../interfaces/cli/payloads.js';
import { escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';

const STATUSES: readonly ActionReport['status'][] = ['done', 'failed', 'unknown'];
const RESULT_BYTES_MAX = 1_048_576;

/** `turnpike runs report`: records the outcome of an action that the caller has executed itself (decision 0060). */
export const runsReport: CliCommand = {
  name: 'runs report',
  access: 'write',
  summary: 'Report the outcome of an action that you have executed yourself',
  operands: { usage: 'RUN_ID', min: 1, max: 1 },
  options: [
    { name: 'outcome', value: 'WHAT', help: `${STATUSES.join(', ')}: whether the action was executed` },
    { name: 'result', value: 'FILE', help: 'its result, a JSON object (-: stdin); recorded with the case' },
  ],
  notes: [
    'RUN_ID is the `call` that `turnpike decide` has printed. The first report counts; the same report again changes',
    'nothing. Nothing proves a report, and the record says so. Without one before the timeout of the tool, the outcome is',
    'recorded as OUTCOME_UNKNOWN.',
  ],
  async run(args, io) {
    const [run = ''] = args.operands;
    const outcome = args.text('outcome') ?? '';
    const status = STATUSES.find((known) => known === outcome);
    if (status === undefined) {
      throw commandUsageError(runsReport, `--outcome takes ${STATUSES.join(', ')}, not ${quoteArgument(outcome)}`);
    }
    const file = args.text('result');
    const result = file === undefined ? {} : { result: await readResult(file, io) };
    await withHomeAccess(args, io, (home) => home.report({ run, status, ...result }));
    const text = args.flag('json')
      ? jsonLine({ run, outcome: status })
      : `${escapeText(`${run} is reported: ${status}`)}\n`;
    await io.stdout.write(text);
    return 0;
  },
};

/** @throws UsageError */
async function readResult(file: string, io: Io): Promise<JsonObject> {
  const bytes = await readBeginning(file, RESULT_BYTES_MAX + 1, io);
  if (bytes.byteLength > RESULT_BYTES_MAX) {
    throw commandUsageError(runsReport, `the result has more than ${RESULT_BYTES_MAX} bytes`);
  }
  const result = parseJsonObject(bytes);
  if (result === null) throw commandUsageError(runsReport, 'the result is not a JSON object');
  return result;
}
