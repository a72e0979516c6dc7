import { commandUsageError } from '../../../interfaces/cli/arguments.js';
import type { CliCommand, CommandArguments } from '../../../interfaces/cli/command.js';
import { isConforming } from '../../../core/contract/validators.js';
import {
  completed,
  type Evaluation,
  evaluationsOf,
  EvaluationList,
  toEvaluationResult,
  toToolCall,
  type EvaluationResult,
} from '../evaluation.js';
import { withHomeAccess } from '../../../interfaces/cli/home-access.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { CASE_DEFAULT } from '../../../interfaces/cli/options/case-default.js';
import { requireOption } from '../../../interfaces/cli/options/person-options.js';
import { parseJsonObject, readBeginning } from '../../../interfaces/cli/payloads.js';
import { createPainter, escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';

const BYTES_MAX = 1_048_576;

/** `turnpike decide`: records decisions about actions that the caller executes itself (decision 0060). */
export const decide: CliCommand = {
  name: 'decide',
  access: 'write',
  summary: 'Decide and record actions that you execute yourself, in the form of AuthZEN',
  operands: { usage: '[FILE]', min: 0, max: 1 },
  options: [
    { name: 'role', value: 'ID', required: true, help: 'the role of the subject' },
    { name: 'lane', value: 'ID', help: 'the lane (default: the lane of agents)' },
    { name: 'case', value: 'ID', help: `the case (default ${CASE_DEFAULT})` },
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
    const evaluations = parseRequest(await readBeginning(args.operands[0] ?? '-', BYTES_MAX + 1, io));
    const results = await withHomeAccess(args, io, async (home) => {
      const decided: EvaluationResult[] = [];
      for (const evaluation of evaluations)
        decided.push(
          toEvaluationResult(await home.decide({ ...toToolCall(evaluation), ...callerOf(evaluation, args) })),
        );
      return decided;
    });
    await printResults(results, args.flag('json'), io);
    return results.every(({ decision }) => decision) ? 0 : 1;
  },
};

/** @throws UsageError */
function callerOf({ subject }: Evaluation, args: CommandArguments) {
  const [lane, key] = [args.text('lane'), args.text('key')];
  return {
    actor: subject.id,
    role: requireOption(decide, args, 'role'),
    ...(lane === undefined ? {} : { lane }),
    case: args.text('case') ?? CASE_DEFAULT,
    ...(key === undefined ? {} : { key }),
  };
}

/** @throws UsageError */
function parseRequest(bytes: Uint8Array): readonly Evaluation[] {
  const invalid = commandUsageError(decide, 'FILE has no request of AuthZEN: subject, action and resource');
  if (bytes.byteLength > BYTES_MAX) throw commandUsageError(decide, `FILE has more than ${BYTES_MAX} bytes`);
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
