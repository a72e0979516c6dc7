// What the commands of sessions have in common: who speaks, and to which session.

import { OVERRIDE_REASONS, SESSION_ROLES, type OverrideReason, type SessionRole } from '../contract/session.js';
import type { SessionAnswer } from '../contract/session-answer.js';
import { SpecId } from '../contract/session-spec.js';
import { conforms } from '../contract/validators.js';
import { effectiveStatus } from '../session/limits.js';
import { refusalWithout } from '../session/answer.js';
import type { SessionState } from '../session/state.js';
import { systemClock } from '../adapters/system-clock.js';
import { ContentReader } from '../runtime/content/content-reader.js';
import { shownAnswer } from '../runtime/content/shown-session.js';
import { committedSession, committedSessions } from '../runtime/sessions/committed-sessions.js';
import type { OverrideRequest, SessionCaller, Sessions, SessionSummary } from '../runtime/sessions/sessions.js';
import { quoted, wrong } from './arguments.js';
import type { Args, Command, ExitCode, Option } from './command.js';
import { withLedger } from './folders.js';
import { withHome, type HeldHome } from './held-home.js';
import type { Io } from './io.js';
import { required } from './people.js';
import { sessionRows, tellAnswer } from './session-text.js';
import { counted, painter, table } from './terminal.js';

/** Loop commands are an agent's, all others a person's, unless `--role` says otherwise. */
type Voice = Exclude<SessionRole, 'observer'>;

const ACTORS: Readonly<Record<SessionRole, string>> = {
  autonomy_runner: 'agent',
  maintainer: 'operator',
  observer: 'observer',
};

export const speakerOptions = (voice: Voice): readonly Option[] => [
  { name: 'actor', value: 'NAME', help: `who you are, for the audit; 3 to 120 characters (default ${ACTORS[voice]})` },
  { name: 'role', value: 'ROLE', help: `the role in which you do it: ${SESSION_ROLES.join(', ')} (default ${voice})` },
];

/** Why somebody overrides what the rules would give. */
export const OVERRIDE_OPTIONS: readonly Option[] = [
  { name: 'reason', value: 'CODE', help: OVERRIDE_REASONS.join(', ') },
  { name: 'detail', value: 'TEXT', help: 'more about it, for the audit; up to 400 characters' },
];

/** @throws UsageError for a role that there is not */
export function speakerOf(command: Command, args: Args, voice: Voice): SessionCaller {
  const text = args.text('role') ?? voice;
  const role = SESSION_ROLES.find((known) => known === text);
  if (role === undefined) throw wrong(command, `--role takes ${SESSION_ROLES.join(', ')}, not ${quoted(text)}`);
  return { actor: args.text('actor') ?? ACTORS[role], role };
}

export function overrideOf(command: Command, args: Args): OverrideRequest {
  const text = required(command, args, 'reason');
  const reason_code: OverrideReason | undefined = OVERRIDE_REASONS.find((known) => known === text);
  if (reason_code === undefined) {
    throw wrong(command, `--reason takes ${OVERRIDE_REASONS.join(', ')}, not ${quoted(text)}`);
  }
  const detail = noteOf(command, args, 'detail');
  return { reason_code, ...(detail === undefined ? {} : { reason_detail: detail }) };
}

const NOTE_CHARS_MAX = 400;

/** @throws UsageError for a text that the ledger does not take */
export function noteOf(command: Command, args: Args, name: string): string | undefined {
  const text = args.text(name);
  if (text === undefined || (text.length <= NOTE_CHARS_MAX && text.isWellFormed())) return text;
  throw wrong(command, `--${name} takes up to ${NOTE_CHARS_MAX} characters`);
}

/** A number that an option gives. @throws UsageError for another one */
export function numberOf(command: Command, args: Args, name: string, max: number): number | undefined {
  const text = args.text(name);
  if (text === undefined) return undefined;
  if (/^\d{1,15}(?:\.\d{1,6})?$/u.test(text) && Number(text) <= max) return Number(text);
  throw wrong(command, `--${name} takes a number up to ${max}, not ${quoted(text)}`);
}

/** What is asked for where nothing is outstanding: the session says so itself. */
export const NO_STEP = 'none';

const ID = /^[\w.-]{1,160}$/u;

/** The id of a phase, task, step or gate attempt. @throws UsageError for what can be none */
export function idOf(command: Command, what: 'phase' | 'task' | 'step' | 'gate attempt', text: string): string {
  const ofSpec = what === 'phase' || what === 'task';
  if (ofSpec ? conforms(SpecId, text) : ID.test(text)) return text;
  throw wrong(command, `${quoted(text)} is no ${what}`);
}

/** The session that comes first among the operands, where it is there, and the operands behind it. */
export function operandsOf(command: Command, { operands }: Args) {
  const [first = ''] = operands;
  if (operands.length < command.operands.max) return { session: undefined, rest: operands };
  if (!/^ses_[A-Za-z0-9]{1,100}$/u.test(first)) throw wrong(command, `${quoted(first)} is no session`);
  return { session: first, rest: operands.slice(1) };
}

/** What a question is about: one session, and its state as a reader sees it. Null where the ledger has none such. */
export interface Asked {
  readonly session_id: string;
  readonly state: SessionState | null;
}

/** One command about one session. */
export interface Asking {
  readonly command: Command;
  readonly voice: Voice;
  readonly args: Args;
  readonly io: Io;
}

type Ask = (sessions: Sessions, asked: Asked, by: SessionCaller) => Promise<SessionAnswer>;

/** Asks the session that is meant, and tells its answer. 0 where it has done what was asked, 1 where it refused. */
export async function askSession({ command, voice, args, io }: Asking, ask: Ask): Promise<ExitCode> {
  const by = speakerOf(command, args, voice);
  const { session } = operandsOf(command, args);
  return withSession(session, args, io, (asked) =>
    withHome(args, io, async (home) => {
      const answer = await unlessStopped(home, io, ask(home.sessions, asked, by));
      return tellAnswer(voice === 'autonomy_runner' ? answer : await shownOf(answer, args, io), args, io);
    }),
  );
}

/** Loop commands are answered to the agent of the session; others to a person, who gets what everyone may have. */
const shownOf = (answer: SessionAnswer, args: Args, io: Io): Promise<SessionAnswer> =>
  withLedger(args, io, ({ store }) => shownAnswer(answer, new ContentReader(store)));

/**
 * A check may take an hour. Where the command is told to stop, it lets go of the home: what runs is killed, and what it
 * came to is recorded as unknown. By itself, a signal would leave a program without a wall running.
 */
async function unlessStopped<T>(home: HeldHome, io: Io, asked: Promise<T>): Promise<T> {
  const stop = io.stop();
  const closing: Promise<void>[] = [];
  const letGo = (): void => void closing.push(home.close());
  if (stop.aborted) letGo();
  else stop.addEventListener('abort', letGo, { once: true });
  try {
    return await asked;
  } finally {
    stop.removeEventListener('abort', letGo);
    await Promise.all(closing);
  }
}

/** Finds the session that is meant: the one that is named, or the only one that is active. 2 where it is not clear. */
export async function withSession(
  named: string | undefined,
  args: Args,
  io: Io,
  work: (asked: Asked) => Promise<ExitCode>,
): Promise<ExitCode> {
  if (named !== undefined) {
    return work({
      session_id: named,
      state: await withLedger(args, io, ({ store }) => committedSession(store, named)),
    });
  }
  const active = await sessionsOf({ active: true }, args, io);
  const [state, other] = active;
  if (state === undefined) return tellAnswer(refusalWithout('NO_ACTIVE_SESSION', ['none is active']), args, io);
  if (other === undefined) return work({ session_id: state.session_id, state });
  await io.stderr.say(`AMBIGUOUS_ACTIVE_SESSION: ${counted(active.length, 'session')} are active: name one`);
  await io.stderr.write(table(sessionRows(active.map(summaryOf)), painter(false)));
  return 2;
}

/** As a reader sees them, in the order in which they were started. */
export const sessionsOf = (which: { readonly active: boolean }, args: Args, io: Io): Promise<readonly SessionState[]> =>
  withLedger(args, io, async ({ store }) => {
    const found: SessionState[] = [];
    for await (const state of committedSessions(store, which)) found.push(state);
    return found;
  });

/** A session in one line, as it is now. */
export function summaryOf(state: SessionState): SessionSummary {
  const { session_id, spec, status, created_at } = state;
  const now = new Date(systemClock().now()).toISOString();
  const effective_status = effectiveStatus(state, now);
  return { session_id, spec_id: spec.id, status, effective_status, created_at_utc: created_at };
}
