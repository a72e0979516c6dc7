import type { JsonObject } from '../../../core/contract/json.js';
import { isConforming } from '../../../core/contract/validators.js';
import { omitUndefined } from '../../../core/omit-undefined.js';
import {
  defineCommand,
  type CliCommand,
  type CommandArguments,
  type CommandGroup,
} from '../../../interfaces/cli/command.js';
import { withHomeAccess } from '../../../interfaces/cli/home-access.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { wordType } from '../../../interfaces/cli/option-types.js';
import { CASE_DEFAULT } from '../../../interfaces/cli/options/case-default.js';
import { parseJsonObject, readBeginning } from '../../../interfaces/cli/payloads.js';
import { createPainter, escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';
import {
  completed,
  type Evaluation,
  evaluationsOf,
  EvaluationList,
  evaluateAll,
  toToolCall,
  type EvaluationResult,
} from '../evaluation.js';

/** The limit of a request, and of the result of an action. */
const BYTES_MAX = 1_048_576;

/** `turnpike decide`: records decisions about actions that the caller executes itself (decision 0060). */
const decide: CliCommand = defineCommand({
  name: 'decide',
  access: 'write',
  summary: 'Decide and record actions that you execute yourself, in the form of AuthZEN',
  operands: { usage: '[FILE]', min: 0, max: 1 },
  options: [
    { name: 'role', value: 'ID', required: true, help: 'the role of the subject' },
    { name: 'lane', value: 'ID', help: 'the lane (default: the lane of agents)' },
    { name: 'case', value: 'ID', default: CASE_DEFAULT, help: `the case (default ${CASE_DEFAULT})` },
    {
      name: 'key',
      value: 'TEXT',
      help: 'while a run of the subject lasts, an equal request gets the recorded decision',
    },
  ],
  notes: [
    'FILE (default -: stdin) has a request of AuthZEN 1.0: subject, action, resource and context, or a list of',
    '`evaluations`. The action is the name of an external tool that a running service has registered. The exit code is 0',
    'if everything is allowed, and 1 otherwise. Nothing is executed. `call` is the run whose outcome you report later.',
  ],
  async run(args, io) {
    const { role, lane, case: case_id, key, json } = args.values;
    const caller = { role, case: case_id, ...omitUndefined({ lane, key }) };
    const evaluations = parseRequest(await readBeginning(args.operands[0] ?? '-', BYTES_MAX + 1, io), args);
    const results = await withHomeAccess(args, io, (home) =>
      evaluateAll(evaluations, 'execute_all', (evaluation) =>
        home.turnpike.decide({ ...toToolCall(evaluation), actor: evaluation.subject.id, ...caller }),
      ),
    );
    await printResults(results, json, io);
    return results.every(({ decision }) => decision) ? 0 : 1;
  },
});

/** @throws UsageError */
function parseRequest(bytes: Uint8Array, { usageError }: CommandArguments): readonly Evaluation[] {
  const invalid = usageError('FILE has no request of AuthZEN: subject, action and resource');
  if (bytes.byteLength > BYTES_MAX) throw usageError(`FILE has more than ${BYTES_MAX} bytes`);
  const read = parseJsonObject(bytes);
  if (read === null || !isConforming(EvaluationList, read)) throw invalid;
  const request: EvaluationList = read;
  const single = completed(request, {});
  if (request.evaluations === undefined && single !== null) return [single];
  const evaluations = evaluationsOf(request);
  if (evaluations === null || evaluations.length === 0) throw invalid;
  return evaluations;
}

async function printResults(results: readonly EvaluationResult[], isJson: boolean, io: Io): Promise<void> {
  const paint = createPainter(io.colours);
  for (const result of results) {
    const { code, message } = result.context;
    const answer = result.decision ? paint('allow', 'green') : paint('deny', 'red');
    const call = 'call' in result.context ? ` ${result.context.call}` : '';
    await io.stdout.write(isJson ? jsonLine(result) : `${answer}${escapeText(`${call} ${code}: ${message}`)}\n`);
  }
}

const STATUSES = ['done', 'failed', 'unknown'] as const;

/** `turnpike runs report`: records the outcome of an action that the caller has executed itself (decision 0060). */
const runsReport: CliCommand = defineCommand({
  name: 'runs report',
  access: 'write',
  summary: 'Report the outcome of an action that you have executed yourself',
  operands: { usage: 'RUN_ID', min: 1, max: 1 },
  options: [
    {
      name: 'outcome',
      value: 'WHAT',
      type: wordType(STATUSES),
      // Without it, the error message says what it takes.
      default: '',
      help: `${STATUSES.join(', ')}: whether the action was executed`,
    },
    { name: 'result', value: 'FILE', help: 'its result, a JSON object (-: stdin); recorded with the case' },
  ],
  notes: [
    'RUN_ID is the `call` that `turnpike decide` has printed. The first report counts; the same report again changes',
    'nothing. Nothing proves a report, and the record says so. Without one before the timeout of the tool, the outcome is',
    'recorded as OUTCOME_UNKNOWN.',
  ],
  async run(args, io) {
    const [run = ''] = args.operands;
    const { outcome: status, result: file, json } = args.values;
    const result = file === undefined ? {} : { result: await readResult(file, args, io) };
    await withHomeAccess(args, io, ({ turnpike }) => turnpike.report({ run, status, ...result }));
    const text = json ? jsonLine({ run, outcome: status }) : `${escapeText(`${run} is reported: ${status}`)}\n`;
    await io.stdout.write(text);
    return 0;
  },
});

/** @throws UsageError */
async function readResult(file: string, { usageError }: CommandArguments, io: Io): Promise<JsonObject> {
  const bytes = await readBeginning(file, BYTES_MAX + 1, io);
  if (bytes.byteLength > BYTES_MAX) throw usageError(`the result has more than ${BYTES_MAX} bytes`);
  const result = parseJsonObject(bytes);
  if (result === null) throw usageError('the result is not a JSON object');
  return result;
}

export const DECISION_COMMANDS: readonly CommandGroup[] = [
  { title: 'agents and runs', commands: [decide, runsReport] },
];
