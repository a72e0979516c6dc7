// The arguments of `turnpike hook`, without the parser of the other commands, which takes longer to load.

import { CASE_DEFAULT } from '../../../../interfaces/cli/options/case-default.js';
import { CLIENT_NAMES } from '../../clients/client-names.js';
import { CLIENTS } from '../../hook-event.js';

/** The values of a call of `turnpike hook`. */
export interface HookArguments {
  readonly client: string;
  readonly home: string;
  readonly project: string;
  readonly actor: string;
  readonly person?: string;
  readonly role: string;
  readonly lane: string;
  readonly case: string;
  readonly timeoutMs: number;
  /** Whether a call that waits for an approval may end the process of the client, which is resumed later. */
  readonly mayDefer: boolean;
}

/** The names of the options, each with a value. */
const OPTIONS = ['home', 'project', 'actor', 'person', 'role', 'lane', 'case', 'timeout', 'pending'] as const;
type HookOption = (typeof OPTIONS)[number];

/** Shorter than the time that `turnpike agents install` gives each client. */
export const HOOK_TIMEOUT_MS = 8_000;

/** @throws Error for an unknown option, and one without a value */
export function hookArguments([client = '', ...rest]: readonly string[]): HookArguments {
  const values = new Map<HookOption, string>();
  for (let at = 0; at < rest.length; at += 2) {
    const name = OPTIONS.find((known) => `--${known}` === rest[at]);
    const value = rest[at + 1];
    if (name === undefined || value === undefined)
      throw new Error(`${rest[at] ?? ''} is no option with a value of turnpike hook`);
    values.set(name, value);
  }
  const timeoutMs = Number(values.get('timeout') ?? HOOK_TIMEOUT_MS);
  if (!Number.isInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > 600_000)
    throw new Error('--timeout: 1 to 600000 milliseconds');
  const pending = values.get('pending') ?? 'deny';
  if (pending !== 'deny' && (pending !== 'defer' || client !== 'claude-code'))
    throw new Error('--pending: deny, or defer for claude-code');
  const person = values.get('person');
  const known = CLIENTS.find((name) => name === client);
  const { projectVariable = '' } = known === undefined ? {} : CLIENT_NAMES[known];
  return {
    client,
    home: values.get('home') ?? '.turnpike',
    project: values.get('project') ?? process.env[projectVariable] ?? process.cwd(),
    actor: values.get('actor') ?? client,
    ...(person === undefined ? {} : { person }),
    role: values.get('role') ?? 'CODING_AGENT',
    lane: values.get('lane') ?? 'CODING',
    case: values.get('case') ?? CASE_DEFAULT,
    timeoutMs,
    mayDefer: pending === 'defer',
  };
}
