// What `step` and `run` have in common: the options of an agent run, the run itself, and how its end is told.

import { EXPOSURES, type Exposure } from '../contract/response.js';
import type { ControlAgentOptions } from '../runtime/control-protocol.js';
import { quoted, wrong } from './arguments.js';
import type { Args, Command, ExitCode, Option } from './command.js';
import { Conversation, type Talk } from './conversation.js';
import { withHome, type HeldHome } from './held-home.js';
import { OutputClosed, type Io } from './io.js';
import type { Payloads } from './payloads.js';
import { proposals } from './progress.js';
import { escaped, jsonLine } from './terminal.js';

export const AGENT_OPTIONS: readonly Option[] = [
  { name: 'lane', value: 'ID', help: 'the lane that the agent works in (default SANDBOX_FILES)' },
  { name: 'role', value: 'ID', help: 'the role that it has (default SANDBOX_AGENT)' },
  { name: 'actor', value: 'NAME', help: 'who it is, for the audit (default agent)' },
  { name: 'case', value: 'ID', help: 'the case whose sandbox it works on (default case-local)' },
  { name: 'scope', value: 'K=V', multiple: true, help: 'a scope field that a lane requires; may be repeated' },
  { name: 'correlation', value: 'ID', help: 'the id that joins this run to others (default: a new one)' },
  { name: 'exposure', value: 'HOW', help: 'detailed or decision: show less in the responses than the policy would' },
];

/** Takes payloads through one agent run, and tells its end. 0 when it completed, whatever was denied in it (D5). */
export async function converse(command: Command, args: Args, payloads: Payloads, io: Io): Promise<ExitCode> {
  const options = agentOptionsOf(command, args);
  const work = async (home: HeldHome): Promise<Talk> => {
    const agent = await home.startAgent(options);
    const talked = await new Conversation(agent, payloads, io).talk();
    await tell(talked, args.flag('json'), io);
    return talked;
  };
  const talk = await withHome(args, io, work, { upstreams: true });
  if (talk.failure !== null) throw talk.failure;
  const { state, reason } = talk.ending;
  if (state === 'completed') return 0;
  return reason === 'AUDIT_FAILURE' ? 3 : 1;
}

async function tell({ ending, counts, rest }: Talk, json: boolean, io: Io): Promise<void> {
  const { run_id, state, reason } = ending;
  if (rest) await io.stderr.say('the run ended before its input: what follows there was not taken');
  await io.stderr.say(`${escaped(run_id)} ${state} (${escaped(reason)}): ${proposals(counts)}`);
  if (state === 'denied' && reason.startsWith('pin.')) {
    await io.stderr.say('the policy has no valid pin: commit its files, or run `turnpike policy pin`');
  }
  if (!json) return;
  const run = { run_id, state, reason, counts: Object.fromEntries(counts) };
  await io.stdout.write(jsonLine({ run })).catch((error: unknown) => {
    if (!(error instanceof OutputClosed)) throw error;
  });
}

/** @throws UsageError */
export function agentOptionsOf(command: Command, args: Args): ControlAgentOptions {
  const scope = scopeOf(command, args.list('scope'));
  const exposure = exposureOf(command, args.text('exposure'));
  const named = (name: 'lane' | 'role' | 'actor' | 'case' | 'correlation') => {
    const value = args.text(name);
    return value === undefined ? {} : { [name]: value };
  };
  return {
    ...named('lane'),
    ...named('role'),
    ...named('actor'),
    ...named('case'),
    ...named('correlation'),
    ...(scope === null ? {} : { scope }),
    ...(exposure === null ? {} : { exposure }),
  };
}

/** Scope fields as they are typed: `key=value`. */
export function scopeOf(command: Command, pairs: readonly string[]): Record<string, string> | null {
  const scope = new Map<string, string>();
  for (const pair of pairs) {
    const [, key = '', value = ''] = /^([^=]+)=(.*)$/su.exec(pair) ?? [];
    if (key === '') throw wrong(command, `--scope takes key=value, not ${quoted(pair)}`);
    if (scope.has(key)) throw wrong(command, `--scope gives ${quoted(key)} twice`);
    scope.set(key, value);
  }
  return scope.size === 0 ? null : Object.fromEntries(scope);
}

function exposureOf(command: Command, text: string | undefined): Exposure | null {
  if (text === undefined) return null;
  const exposure = EXPOSURES.find((name) => name === text);
  if (exposure === undefined) throw wrong(command, `--exposure takes ${EXPOSURES.join(' or ')}, not ${quoted(text)}`);
  return exposure;
}
