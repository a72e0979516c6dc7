import { resolve } from 'node:path';
import { GATE_POLICIES, POSTURES, SESSION_LIMITS, type SessionLimits } from '../contract/session.js';
import { EXPOSURES } from '../../../core/contract/run/response.js';
import { omitUndefined } from '../../../core/omit-undefined.js';
import type { StartSessionOptions } from '../sessions.js';
import { parseScope } from '../../../interfaces/cli/agent-command.js';
import { quoteArgument } from '../../../interfaces/cli/arguments.js';
import { defineCommand, toCamelCase, type ArgumentsOf, type CommandOption } from '../../../interfaces/cli/command.js';
import { wordType } from '../../../interfaces/cli/option-types.js';
import { withHomeAccess } from '../../../interfaces/cli/home-access.js';
import { CASE_DEFAULT, CASE_HELP } from '../../../interfaces/cli/options/case-default.js';
import { callerOf, callerOptions, readSpecFromStdin } from './session-options.js';
import { printAnswer } from './session-text.js';

/** Settings that have a default in the posture and an option to override it. */
const SWITCHES = [
  { name: 'stop-on-phase', key: 'stopOnPhaseCompletion', help: 'pause after each phase' },
  {
    name: 'enforce-gates',
    key: 'enforceGates',
    help: 'block the next phase and completion until the gates are satisfied',
  },
  { name: 'waivers', key: 'allowGateWaiver', help: 'allow a maintainer to waive gates' },
  { name: 'skips', key: 'allowSkipped', help: 'allow a phase with skipped tasks to pass its gate' },
  {
    name: 'retry-gates',
    key: 'autoRetryFidelityGate',
    help: 'review a failed gate again after its findings were handled',
  },
] as const;
type SwitchKey = (typeof SWITCHES)[number]['key'];

const OPTIONS = [
  { name: 'case', value: 'ID', help: CASE_HELP },
  { name: 'agent', value: 'NAME', help: 'the name of the agent, for the audit (default agent)' },
  { name: 'agent-role', value: 'ID', help: 'the role of the agent runs (default SANDBOX_AGENT)' },
  { name: 'lane', value: 'ID', help: 'the lane of tasks that name no lane (default SANDBOX_FILES)' },
  { name: 'scope', value: 'K=V', multiple: true, help: 'a scope field that a lane requires; may be repeated' },
  {
    name: 'exposure',
    value: 'HOW',
    type: wordType(EXPOSURES),
    help: `${EXPOSURES.join(' or ')}: show less in responses than the policy allows`,
  },
  { name: 'correlation', value: 'ID', help: 'the correlation id of all runs of the session (default: a new id)' },
  { name: 'posture', value: 'HOW', type: wordType(POSTURES), help: `${POSTURES.join(', ')} (default supervised)` },
  {
    name: 'gate-policy',
    value: 'HOW',
    type: wordType(GATE_POLICIES),
    help: `${GATE_POLICIES.join(', ')} (default: that of the posture)`,
  },
  { name: 'limit', value: 'NAME=N', multiple: true, help: 'a limit of the session; may be repeated' },
  ...SWITCHES.flatMap(({ name, help }) => [
    { name, help },
    { name: `no-${name}` as const, help: `the opposite of --${name}` },
  ]),
  {
    name: 'idempotency-key',
    value: 'KEY',
    help: 'return the existing session if it was started with this key and spec',
  },
  { name: 'force', help: 'end the existing session of the spec first' },
] as const satisfies readonly CommandOption[];

/** `turnpike session start`: starts a session that works through a spec (S3). */
export const sessionStart = defineCommand({
  name: 'session start',
  access: 'write',
  summary: 'Start a session that works through a spec, one step at a time',
  operands: { usage: 'SPEC', min: 1, max: 1 },
  options: [...OPTIONS, ...callerOptions('maintainer')],
  notes: [
    'SPEC is a YAML file, or JSON if it begins with {; - reads stdin. At each step the session checks whether the file has',
    'changed. A spec has one session at a time. `turnpike session next` prints the first step. The limits are',
    ...wrapWords(Object.keys(SESSION_LIMITS)),
  ],
  async run(args, io) {
    const options = parseStartOptions(args);
    const [name = ''] = args.operands;
    const spec = name === '-' ? await readSpecFromStdin(io) : resolve(io.cwd, name);
    const by = callerOf(args.values, 'maintainer');
    return withHomeAccess(args, io, async (home) =>
      printAnswer(await home.turnpike.sessions.start({ ...options, spec, by }), args, io),
    );
  },
});

function parseStartOptions(args: ArgumentsOf<typeof OPTIONS>): Omit<StartSessionOptions, 'spec' | 'by'> {
  const { agent, agentRole, lane, correlation, idempotencyKey, exposure, posture, gatePolicy, force } = args.values;
  const scope = parseScope(args, args.values.scope) ?? undefined;
  const limits = parseLimits(args);
  return {
    case: args.values.case ?? CASE_DEFAULT,
    ...omitUndefined({ actor: agent, agentRole, lane, correlation, idempotencyKey }),
    ...omitUndefined({ exposure, posture, gatePolicy, scope, limits }),
    ...parseSwitches(args),
    force,
  };
}

function parseSwitches({ values, usageError }: ArgumentsOf<typeof OPTIONS>): Partial<Record<SwitchKey, boolean>> {
  const set = SWITCHES.flatMap(({ name, key }) => {
    const [on, off] = [values[toCamelCase(name)], values[toCamelCase(`no-${name}` as const)]];
    if (on && off) throw usageError(`--${name} and --no-${name} contradict each other`);
    return on || off ? [[key, on] as const] : [];
  });
  return Object.fromEntries(set);
}

/** Limits in the form `name=number`. The session checks their ranges. */
function parseLimits(args: ArgumentsOf<typeof OPTIONS>): Partial<SessionLimits> | undefined {
  const limits = new Map<string, number>();
  for (const pair of args.values.limit) {
    const [, name = '', digits = ''] = /^(\w{1,80})=(\d{1,9})$/u.exec(pair) ?? [];
    if (!Object.hasOwn(SESSION_LIMITS, name)) throw args.usageError(`--limit takes NAME=N, not ${quoteArgument(pair)}`);
    if (limits.has(name)) throw args.usageError(`--limit gives ${quoteArgument(name)} twice`);
    limits.set(name, Number(digits));
  }
  return limits.size === 0 ? undefined : Object.fromEntries(limits);
}

/** Fills lines with words up to their width. */
function wrapWords(words: readonly string[]): readonly string[] {
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length > 115) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
