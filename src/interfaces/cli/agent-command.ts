// Shared by `step` and `run`: the options of an agent run, the run itself, and the report of its end.

import { EXPOSURES } from '../../core/contract/run/response.js';
import { omitUndefined } from '../../core/omit-undefined.js';
import type { ControlAgentOptions } from '../../host/control/control-messages.js';
import { quoteArgument } from './arguments.js';
import type { ArgumentsOf, CommandArguments, ExitCode, CommandOption } from './command.js';
import { ProposalLoop, type ProposalLoopResult, proposalCountText } from './proposal-loop.js';
import { wordType } from './option-types.js';
import { CASE_DEFAULT, CASE_HELP } from './options/case-default.js';
import { withHomeAccess, type HomeAccess } from './home-access.js';
import { OutputClosedError, type Io } from './io.js';
import type { Payloads } from './payloads.js';
import { escapeText, jsonLine } from './text/terminal.js';

export const AGENT_OPTIONS = [
  { name: 'lane', value: 'ID', help: 'the lane of the agent (default SANDBOX_FILES)' },
  { name: 'role', value: 'ID', help: 'the role of the agent (default SANDBOX_AGENT)' },
  { name: 'actor', value: 'NAME', help: 'the name of the agent, for the audit (default agent)' },
  { name: 'case', value: 'ID', help: CASE_HELP },
  { name: 'scope', value: 'K=V', multiple: true, help: 'a scope field that a lane requires; may be repeated' },
  { name: 'correlation', value: 'ID', help: 'the correlation id of this run (default: a new id)' },
  {
    name: 'exposure',
    value: 'HOW',
    type: wordType(EXPOSURES, ' or '),
    help: 'explained, detailed or decision: show less in responses than the policy allows',
  },
] as const satisfies readonly CommandOption[];

type AgentArguments = ArgumentsOf<typeof AGENT_OPTIONS>;

/**
 * Submits payloads to one agent run and reports its end. Closes the payloads, also if the run cannot start.
 * @returns 0 if the run completed, even if steps were denied (D5)
 */
export async function runAgentCommand(args: AgentArguments, payloads: Payloads, io: Io): Promise<ExitCode> {
  try {
    return await submitPayloads(args, payloads, io);
  } finally {
    payloads.close();
  }
}

async function submitPayloads(args: AgentArguments, payloads: Payloads, io: Io): Promise<ExitCode> {
  const options = agentOptionsOf(args);
  const work = async (home: HomeAccess): Promise<ProposalLoopResult> => {
    const agent = await home.turnpike.startAgent(options);
    const result = await new ProposalLoop(agent, payloads, io).run();
    await printEnding(result, args.values.json, io);
    return result;
  };
  const talk = await withHomeAccess(args, io, work, { upstreams: true });
  if (talk.failure !== null) throw talk.failure;
  const { state, reason } = talk.ending;
  if (state === 'completed') return 0;
  return reason === 'AUDIT_FAILURE' ? 3 : 1;
}

async function printEnding({ ending, counts, hasMoreInput }: ProposalLoopResult, json: boolean, io: Io): Promise<void> {
  const { run_id, state, reason } = ending;
  if (hasMoreInput)
    await io.stderr.writeLine('the run ended before its input did: the rest of the input was not submitted');
  await io.stderr.writeLine(`${escapeText(run_id)} ${state} (${escapeText(reason)}): ${proposalCountText(counts)}`);
  if (state === 'denied' && reason.startsWith('pin.')) {
    await io.stderr.writeLine('the policy has no valid pin: commit its files, or run `turnpike policy pin`');
  }
  if (!json) return;
  const run = { run_id, state, reason, counts: Object.fromEntries(counts) };
  await io.stdout.write(jsonLine({ run })).catch((error: unknown) => {
    if (!(error instanceof OutputClosedError)) throw error;
  });
}

/** @throws UsageError for an invalid scope field */
export function agentOptionsOf(args: AgentArguments): ControlAgentOptions {
  const { lane, role, actor, case: case_id = CASE_DEFAULT, correlation, exposure } = args.values;
  const scope = parseScope(args, args.values.scope);
  return omitUndefined({ lane, role, actor, case: case_id, correlation, scope, exposure });
}

/** Scope fields in the form `key=value`. */
export function parseScope(
  { usageError }: Pick<CommandArguments, 'usageError'>,
  pairs: readonly string[],
): Record<string, string> | undefined {
  const scope = new Map<string, string>();
  for (const pair of pairs) {
    const [, key = '', value = ''] = /^([^=]+)=(.*)$/su.exec(pair) ?? [];
    if (key === '') throw usageError(`--scope takes key=value, not ${quoteArgument(pair)}`);
    if (scope.has(key)) throw usageError(`--scope gives ${quoteArgument(key)} twice`);
    scope.set(key, value);
  }
  return scope.size === 0 ? undefined : Object.fromEntries(scope);
}
