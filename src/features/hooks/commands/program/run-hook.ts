// `turnpike hook CLIENT`: passes one event of a coding agent to the process that has the home directory, and writes its
// answer. A coding agent starts it before each call of a tool, so it loads as little as possible.
//
// Invariant: whatever fails, the process ends with code 2 and a message, which stops the call in every client.

import { createConnection } from 'node:net';
import { join, resolve } from 'node:path';
import { userInfo } from 'node:os';
import { isJsonObject, readJson } from '../../../../core/contract/json.js';
import { omitUndefined } from '../../../../core/omit-undefined.js';
import { CLIENT_NAMES, SETTINGS_VARIABLES } from '../../clients/client-names.js';
import { HOOK_OPTIONS, HOOK_TIMEOUT_MS } from '../../clients/hook-command-line.js';
import { CLIENTS, type Client, type UndecidedReason } from '../../hook-event.js';
import { isCallIn, sessionIn, totalOf, type UndecidedCounts, CountFiles } from '../../client-files/count-files.js';
import { CASE_DEFAULT } from '../../../../interfaces/cli/options/case-default.js';

/** The longest event of a client, in bytes. */
const EVENT_BYTES_MAX = 4_194_304;
const ANSWER_BYTES_MAX = 1_048_576;

/** The values of a call of `turnpike hook`. */
interface HookArguments {
  readonly client: string;
  readonly home: string;
  /** As the service gets it. Without a person, it is the user of this machine. */
  readonly caller: Readonly<Partial<Record<'actor' | 'person' | 'role' | 'lane' | 'case' | 'project', string>>>;
  readonly timeoutMs: number;
  /** Whether a call that waits for an approval may end the process of the client, which is resumed later. */
  readonly mayDefer: boolean;
}

/**
 * Reads the arguments without the parser of the other commands, which takes longer to load.
 * @throws Error for an unknown option, and one without a value
 */
function hookArguments([client = '', ...rest]: readonly string[]): HookArguments {
  const values = new Map<string, string>();
  for (let at = 0; at < rest.length; at += 2) {
    const name = HOOK_OPTIONS.find((known) => `--${known}` === rest[at]);
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
  const known = CLIENTS.find((name) => name === client);
  const { projectVariable = '' } = known === undefined ? {} : CLIENT_NAMES[known];
  return {
    client,
    home: values.get('home') ?? '.turnpike',
    caller: omitUndefined({
      actor: values.get('actor') ?? client,
      person: values.get('person'),
      role: values.get('role') ?? 'CODING_AGENT',
      lane: values.get('lane') ?? 'CODING',
      case: values.get('case') ?? CASE_DEFAULT,
      project: resolve(values.get('project') ?? process.env[projectVariable] ?? process.cwd()),
    }),
    timeoutMs,
    mayDefer: pending === 'defer',
  };
}

/** What the other process answers. */
interface HookAnswerMessage {
  readonly ok: boolean;
  readonly result?: {
    readonly unchecked?: true;
    /** Why the call was denied without a record. */
    readonly undecided?: UndecidedReason;
    /** The counts are recorded, and their session has ended. */
    readonly noted?: true;
    readonly reply?: { readonly body: object | null; readonly exit: number; readonly stderr: string };
  };
  readonly error?: { readonly message?: string };
}

/** Runs the command and ends the process. */
export async function runHook(argv: readonly string[]): Promise<never> {
  let counted: CountedEvent | null = null;
  try {
    const given = hookArguments(argv);
    counted = new CountedEvent(given);
    const timer = setTimeout(() => void refuse(counted, 'the service has not answered in time'), given.timeoutMs);
    const text = await readInput(counted);
    const event = given.mayDefer ? withDeferral(text) : text;
    let answer = await ask(given, event, counted.counts());
    if (answer.result?.unchecked === true) answer = await ask(given, event, counted.counts(), await checkClient(given));
    clearTimeout(timer);
    const { reply, undecided, noted } = answer.result ?? {};
    if (!answer.ok || reply === undefined)
      return await refuse(counted, answer.error?.message ?? 'the service has given no decision');
    if (undecided !== undefined) counted.add(undecided);
    if (noted === true) counted.remove();
    return await end(reply.exit, reply.body === null ? '' : JSON.stringify(reply.body), reply.stderr);
  } catch (error) {
    return refuse(counted, error instanceof Error ? error.message : 'the hook failed');
  }
}

/** Denies without a decision, and counts that. */
function refuse(counted: CountedEvent | null, message: string): Promise<never> {
  counted?.add();
  return fail(message);
}

/** What the hook counts of the event that it answers. */
class CountedEvent {
  readonly #files: CountFiles;
  readonly #client: Client | null;
  /** What is known of the event so far. */
  text = '';
  reason: UndecidedReason = 'no_service';

  constructor({ client, home }: HookArguments) {
    this.#files = new CountFiles(home, process.env);
    this.#client = CLIENTS.find((name) => name === client) ?? null;
  }

  /** What was counted for the session of the event; null for nothing. */
  counts(): UndecidedCounts | null {
    const [client, session] = [this.#client, this.#session()];
    if (client === null || session === null) return null;
    const counts = this.#files.read(client, session);
    return totalOf(counts) === 0 ? null : counts;
  }

  add(reason = this.reason): void {
    if (this.#client !== null && isCallIn(this.text)) this.#files.add(this.#client, this.#session(), reason);
  }

  /** The ledger has the counts of a session that has ended. */
  remove(): void {
    if (this.#client !== null) this.#files.remove(this.#client, this.#session());
  }

  #session(): string | null {
    return this.#client === null ? null : sessionIn(this.#client, this.text);
  }
}

/** A message on standard error and code 2 stop the call in every client. */
const fail = (message: string): Promise<never> =>
  end(2, '', `Turnpike could not decide this call, so it is denied: ${message}\n`);

/** Writes both texts completely before the process ends. */
async function end(code: number, out: string, err: string): Promise<never> {
  const written = [
    new Promise((done) => process.stdout.write(out, done)),
    new Promise((done) => process.stderr.write(err, done)),
  ];
  await Promise.all(written);
  process.exit(code);
}

async function readInput(counted: CountedEvent): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of process.stdin as AsyncIterable<Buffer>) {
    bytes += part.length;
    parts.push(part);
    if (bytes > EVENT_BYTES_MAX) {
      [counted.text, counted.reason] = [Buffer.concat(parts).toString(), 'too_long'];
      throw new Error(`the event is longer than ${EVENT_BYTES_MAX} bytes`);
    }
  }
  const given = Buffer.concat(parts);
  [counted.text, counted.reason] = [given.toString(), 'unreadable'];
  const text = new TextDecoder('utf-8', { fatal: true }).decode(given);
  counted.reason = 'no_service';
  return text;
}

/**
 * The event with the member by which the dialect of Claude Code knows that a call may be deferred. The text is not
 * parsed here: the service refuses what is not strict JSON, such as an event that has the member already.
 */
const withDeferral = (event: string): string => event.replace(/^\s*\{/, '{"turnpike_may_defer":true,');

/** One request on the control socket (`control-messages.ts`). */
function ask(
  { client, home, caller }: HookArguments,
  event: string,
  undecided: UndecidedCounts | null,
  check?: object,
): Promise<HookAnswerMessage> {
  const person = caller.person ?? userInfo().username.padEnd(3, '_');
  const request = {
    id: 1,
    op: 'hook',
    client,
    event,
    caller: { ...caller, person },
    ...omitUndefined({ check, undecided: undecided ?? undefined }),
  };
  return new Promise((done, refuse) => {
    const socket = createConnection(join(resolve(home), 'control.sock'));
    let text = '';
    socket.setEncoding('utf8');
    socket.on('connect', () => socket.write(`${JSON.stringify(request)}\n`));
    socket.on('data', (part: string) => {
      text += part;
      const line = text.indexOf('\n');
      if (line < 0 && text.length <= ANSWER_BYTES_MAX) return;
      socket.destroy();
      const answer = readJson(text.slice(0, line));
      if (isJsonObject(answer)) done(answer as unknown as HookAnswerMessage);
      else refuse(new Error('the service has answered with something else'));
    });
    socket.on('close', () => refuse(new Error('the service has closed the connection')));
    socket.on('error', () =>
      refuse(new Error(`no service decides for ${home}: start \`turnpike serve --hooks --home ${home}\``)),
    );
  });
}

/**
 * What only a process of the client knows of it, once for each session: its version, and the variables by which it
 * finds its settings. The service looks at the settings itself, so that a changed hook program cannot answer for
 * itself.
 */
async function checkClient({ client }: HookArguments): Promise<object> {
  const known = CLIENTS.find((name) => name === client);
  if (known === undefined) throw new Error(`${client} is no client of turnpike hook`);
  const { findClientVersion } = await import('../../client-files/client-version.js');
  const version = await findClientVersion(CLIENT_NAMES[known], process.env);
  const environment = omitUndefined(Object.fromEntries(SETTINGS_VARIABLES.map((name) => [name, process.env[name]])));
  return { version, findings: [], environment };
}
