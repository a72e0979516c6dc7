import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  connectTo,
  listenAt,
  SOCKET_PATH_BYTES_MAX,
  type SocketConnection,
} from '../../../src/system/network/unix-socket.js';
import {
  LedgerError,
  PolicyError,
  RunError,
  SandboxError,
  UsageError,
  type CodedError,
} from '../../../src/core/errors.js';
import { splitLines } from '../../../src/host/control/split-lines.js';
import { connectControl, type ControlClient } from '../../../src/host/control/control-client.js';
import { fromWireError, toWireError } from '../../../src/host/control/control-errors.js';
import { decodePayload, parseMessage, RequestEnvelope } from '../../../src/host/control/control-messages.js';
import { PENDING_REQUESTS_MAX } from '../../../src/host/control/control-session.js';
import { openTurnpike, type Turnpike } from '../../../src/host/turnpike.js';
import { finish, initialised, line, tempFolder, think, write } from './fake-io.js';

const warnings: string[] = [];
const log = {
  info: () => undefined,
  warn: (message: string) => void warnings.push(message),
  error: (message: string) => void warnings.push(message),
};

let folder: string;
let turnpike: Turnpike;
const socketPath = (): string => join(folder, '.turnpike/control.sock');
const open = (over: object = {}) =>
  openTurnpike({ home: join(folder, '.turnpike'), contract: join(folder, 'contract'), log, ...over });

async function opened(): Promise<void> {
  warnings.length = 0;
  folder = await initialised();
  turnpike = await open();
}
/** Each test of the group has a home directory of its own. */
function eachWithHome(): void {
  beforeEach(opened);
  afterEach(() => turnpike.close());
}
/** The tests of the group have one home directory. */
function allWithHome(): void {
  beforeAll(opened);
  afterAll(() => turnpike.close());
}

async function client(contract: string | null = null): Promise<ControlClient> {
  const connected = await connectControl(socketPath(), contract);
  if (connected === null) throw new Error('nobody listens');
  return connected;
}

/** A raw client: sends bytes, and parses each response. */
class Raw {
  readonly connection: SocketConnection;
  readonly #lines: AsyncGenerator<Uint8Array>;

  constructor(connection: SocketConnection) {
    this.connection = connection;
    this.#lines = splitLines(connection.chunks, 1e9);
  }

  static async connect(): Promise<Raw> {
    return new Raw((await connectTo(socketPath()))!);
  }

  async ask(text: string): Promise<unknown> {
    await this.connection.send(`${text}\n`).catch(() => undefined);
    return this.answer();
  }

  async answer(): Promise<unknown> {
    const { value } = (await this.#lines.next()) as { value: Uint8Array | undefined };
    return value === undefined ? 'closed' : (JSON.parse(Buffer.from(value).toString()) as unknown);
  }
}

const refusal = (code: string, id: number | null = null) => ({
  id,
  ok: false,
  error: { code, message: expect.any(String) },
});

describe('the socket', () => {
  eachWithHome();

  test('D13 is in the home directory with mode 0600 while that is open, and is removed afterwards', async () => {
    const { mode } = statSync(socketPath());
    expect((mode & 0o777).toString(8)).toBe('600');
    expect(statSync(socketPath()).isSocket()).toBe(true);
    expect(existsSync(join(folder, '.turnpike/.control'))).toBe(false);
    await turnpike.close();
    expect(existsSync(socketPath())).toBe(false);
    expect(await connectControl(socketPath(), null)).toBeNull();
    turnpike = await open();
  });

  test('does not exist if it is disabled', async () => {
    await turnpike.close();
    turnpike = await open({ control: false });
    expect(turnpike.control).toBeNull();
    expect(existsSync(socketPath())).toBe(false);
  });

  test('D13 of a dead process is replaced by the next owner of the lock', async () => {
    await turnpike.close();
    const other = join(folder, 'other.sock');
    const dead = await new Promise<Server>((resolve) => {
      const server = createServer().listen(other, () => resolve(server));
    });
    renameSync(other, socketPath());
    dead.close();
    expect(await connectControl(socketPath(), null)).toBeNull();
    turnpike = await open();
    const connected = await client();
    await connected.close();
  });

  test('does not replace another file at its path, and the home directory works without it', async () => {
    await turnpike.close();
    writeFileSync(socketPath(), 'mine');
    turnpike = await open();
    expect(turnpike.control).toBeNull();
    expect(warnings).toEqual([expect.stringContaining('control socket cannot be served')]);
    expect(readFileSync(socketPath(), 'utf8')).toBe('mine');
    expect(await (await turnpike.startAgent({ case: 'case-local' })).submit(think())).toMatchObject({
      outcome: 'SUCCESS',
    });
  });

  test('D13 works in a home directory whose path exceeds the length of a socket address', async () => {
    const deep = join(tempFolder(), 'a'.repeat(80), 'b'.repeat(80));
    mkdirSync(deep, { recursive: true });
    const long = await openTurnpike({ home: join(deep, 'home'), contract: join(folder, 'contract'), log });
    const path = join(deep, 'home/control.sock');
    expect(Buffer.byteLength(path)).toBeGreaterThan(SOCKET_PATH_BYTES_MAX);
    const connected = (await connectControl(path, null))!;
    const agent = await connected.startAgent({ case: 'case-local' });
    expect(await agent.submit(finish())).toMatchObject({ outcome: 'SUCCESS' });
    await connected.close();
    await long.close();
    expect(existsSync(path)).toBe(false);
  });

  test('has at most 64 connections, and one that closes makes room', async () => {
    const all = await Promise.all(Array.from({ length: 64 }, () => client()));
    const agent = await all[0]!.startAgent({ case: 'case-local' });
    await expect((await client()).startAgent({ case: 'case-local' })).rejects.toMatchObject({ code: 'CLOSED' });
    await all[1]!.close();
    while (turnpike.control?.connections === 64) await delay(5);
    const late = await client();
    expect((await late.startAgent({ case: 'case-local' })).run_id).not.toBe(agent.run_id);
    await Promise.all([...all, late].map((each) => each.close()));
    while (turnpike.control?.connections !== 0) await delay(5);
  });
});

describe('a client, when its owner changes', () => {
  eachWithHome();

  test('gets errors with their class and code', async () => {
    const connected = await client();
    await expect(connected.startAgent({ case: '../..' })).rejects.toThrow(UsageError);
    writeFileSync(join(folder, 'contract/policy/roles.yaml'), 'roles:');
    await delay(1_100);
    await expect(connected.startAgent({ case: 'case-local' })).rejects.toThrow(PolicyError);
    await connected.close();
  });

  test('finishes its work when the owner retires, and cannot start more', async () => {
    const connected = await client();
    const agent = await connected.startAgent({ case: 'case-local' });
    const retired = turnpike.control?.retire();
    const meanwhile = await client();
    const other = await meanwhile.startAgent({ case: 'case-local' });
    await connected.close();
    expect(await other.submit(finish())).toMatchObject({ outcome: 'SUCCESS' });
    await meanwhile.close();
    await retired;
    const late = await client();
    await expect(late.startAgent({ case: 'case-local' })).rejects.toMatchObject({ code: 'CLOSED' });
    expect(agent.run_id).not.toBe(other.run_id);
    await late.close();
  });

  test('learns how its run ended when the owner closes, and then that the owner is gone', async () => {
    const connected = await client();
    const agent = await connected.startAgent({ case: 'case-local' });
    await turnpike.close();
    expect(await agent.finished).toMatchObject({ state: 'failed', reason: 'INTERRUPTED' });
    await expect(agent.respond(think())).rejects.toMatchObject({ code: 'CLOSED' });
    turnpike = await open();
  });
});

describe('a client', () => {
  allWithHome();

  test('D13 U-04 has agent runs like a caller in the process', async () => {
    const connected = await client();
    const agent = await connected.startAgent({ actor: 'remote', case: 'case-9', correlation: 'cor_9' });
    expect(agent).toMatchObject({ root_run_id: agent.run_id.slice(0, -2), correlation_id: 'cor_9' });
    expect(await agent.submit(write('/sandbox/a.txt', 'x'))).toMatchObject({ outcome: 'SUCCESS' });
    expect(await agent.submit(Uint8Array.of(0xff))).toMatchObject({ error: { error_code: 'INVALID_ENCODING' } });
    expect(await agent.submit('\ud800')).toMatchObject({ error: { error_code: 'INVALID_ENCODING' } });
    expect(await agent.end()).toEqual({ run_id: agent.run_id, state: 'completed', reason: 'end_of_input' });
    expect(await agent.finished).toMatchObject({ reason: 'end_of_input' });
    await expect(agent.respond(think())).rejects.toThrow(RunError);
    await expect(agent.respond(think())).rejects.toMatchObject({ code: 'RUN_ENDED' });
    await expect(agent.cancel('late')).rejects.toMatchObject({ code: 'INVALID_STATE_TRANSITION' });
    await connected.close();
  });

  test('learns of the end of its run before it gets the last response', async () => {
    const connected = await client();
    const agent = await connected.startAgent({ case: 'case-local' });
    let ended = false;
    void agent.finished.then(() => (ended = true));
    await agent.respond(finish());
    expect(ended).toBe(true);
    await connected.close();
  });

  test('D4 a repeated input id gets the recorded response', async () => {
    const connected = await client();
    const agent = await connected.startAgent({ case: 'case-local' });
    const same = write('/sandbox/a.txt', 'once');
    const [one, two] = [
      await agent.respond(same, { inputId: 'request-1' }),
      await agent.respond(same, { inputId: 'request-1' }),
    ];
    expect(two).toBe(one);
    await connected.close();
  });

  test('can cancel a run while it waits', async () => {
    const connected = await client();
    const agent = await connected.startAgent({ case: 'case-local' });
    expect(await agent.cancel('enough')).toMatchObject({ state: 'cancelled', reason: 'by_caller' });
    expect(await agent.finished).toMatchObject({ state: 'cancelled' });
    await connected.close();
  });

  test('gets an ended run for an agent that policy denies', async () => {
    const connected = await client();
    const agent = await connected.startAgent({ case: 'case-local', role: 'NOBODY' });
    expect(await Promise.race([agent.finished, Promise.resolve('not yet')])).toMatchObject({ state: 'denied' });
    await connected.close();
  });

  test('never runs under another contract than the requested one', async () => {
    const [other, same] = [await client('/elsewhere'), await client(join(folder, 'contract'))];
    await expect(other.startAgent({ case: 'case-local' })).rejects.toMatchObject({ code: 'USAGE' });
    const agent = await same.startAgent({ case: 'case-local' });
    expect((await agent.end()).state).toBe('completed');
    await Promise.all([other.close(), same.close()]);
  });

  test('D3 its runs fail as interrupted when its connection closes; those of others continue', async () => {
    const [one, two] = [await client(), await client()];
    const [mine, other] = [await one.startAgent({ case: 'case-local' }), await two.startAgent({ case: 'case-local' })];
    await one.close();
    while (turnpike.control?.connections !== 1) await delay(5);
    expect(await turnpike.ledger.run(mine.run_id)).toMatchObject({ status: 'failed', outcome: 'failed:INTERRUPTED' });
    expect(await other.submit(think())).toMatchObject({ outcome: 'SUCCESS' });
    await two.close();
  });

  test('gets the right response for each of many concurrent proposals', async () => {
    const connected = await client();
    const agent = await connected.startAgent({ case: 'case-local' });
    const lines = Array.from({ length: 40 }, think);
    const responses = await Promise.all(lines.map((text) => agent.submit(text)));
    expect(responses.map(({ proposal_id }) => proposal_id)).toEqual(
      lines.map((text) => (JSON.parse(text) as { id: string }).id),
    );
    await connected.close();
  });

  test('sends pings while it is idle, and stays connected', async () => {
    const raw = await Raw.connect();
    expect(await raw.ask('{"id":7,"op":"ping"}')).toEqual({ id: 7, ok: true, result: {} });
    raw.connection.destroy();
  });

  test('gets a refusal of an unknown action like any other caller', async () => {
    const connected = await client();
    const agent = await connected.startAgent({ case: 'case-local' });
    expect(await agent.submit(line('SHUTDOWN'))).toMatchObject({ error: { error_code: 'ACTION_NOT_ALLOWED' } });
    await connected.close();
  });
});

describe('an impostor as the owner', () => {
  const against = async (answers: (connection: SocketConnection) => void) => {
    const path = join(tempFolder(), 's');
    const server = await listenAt({ path, connectionsMax: 1, idleMs: 5_000, onConnection: answers });
    const connected = (await connectControl(path, null))!;
    const outcome = await connected.startAgent({ case: 'case-local' }).catch((error: unknown) => error);
    await connected.close();
    await server.close();
    return outcome;
  };

  test('that disconnects: the client reports that the owner is gone', async () => {
    expect(await against((connection) => connection.destroy())).toMatchObject({ code: 'CLOSED' });
  });

  test.each([
    ['no JSON', 'hello\n'],
    ['a response with an unknown id', '{"id":"1","ok":true,"result":{}}\n'],
    ['a response of another shape', '{"id":1,"ok":true,"result":{"run_id":7}}\n'],
    ['bytes', '\u0000\u0000\n'],
  ])('says %s: the client stops', async (_name, text) => {
    expect(await against((connection) => void connection.send(text))).toMatchObject({ code: 'INVARIANT' });
  });
});

describe('a hostile connection', () => {
  allWithHome();

  const start = '{"id":1,"op":"start_agent","contract":null,"options":{"case":"case-local"}}';

  test.each([
    ['no JSON', 'hello'],
    ['nothing', ''],
    ['a duplicate key', '{"id":1,"id":2,"op":"ping"}'],
    ['a reserved key', '{"id":1,"op":"ping","__proto__":{}}'],
    ['deep nesting', '['.repeat(100_000)],
    ['an unknown operation', '{"id":1,"op":"shutdown"}'],
    ['a key too many', '{"id":1,"op":"ping","as":"root"}'],
    ['an id that is none', '{"id":0,"op":"ping"}'],
    ['an invalid agent link', '{"id":1,"op":"start_agent","contract":null,"options":{"link":"eternal"}}'],
    ['a run id that is none', '{"id":1,"op":"end","run_id":"../../x"}'],
  ])('that says %s is told so and hung up on', async (_name, text) => {
    const raw = await Raw.connect();
    expect(await raw.ask(text)).toEqual(refusal('USAGE'));
    expect(await raw.answer()).toBe('closed');
  });

  test('that sends an endless line is disconnected', async () => {
    const raw = await Raw.connect();
    const part = 'a'.repeat(4_194_304);
    for (let i = 0; i < 11; i += 1) void raw.connection.send(part).catch(() => undefined);
    // Bytes in flight may prevent the response from arriving.
    expect([refusal('USAGE'), 'closed']).toContainEqual(await raw.answer());
    await raw.connection.closed;
  });

  test('that sends invalid base64 gets an error, and its run continues', async () => {
    const raw = await Raw.connect();
    const { result } = (await raw.ask(start)) as { result: { run_id: string } };
    const respond = { op: 'respond', run_id: result.run_id };
    expect(await raw.ask(JSON.stringify({ id: 2, ...respond, payload: 'a?' }))).toEqual(refusal('USAGE', 2));
    const payload = Buffer.from(think()).toString('base64');
    expect(await raw.ask(JSON.stringify({ id: 3, ...respond, payload }))).toMatchObject({ id: 3, ok: true });
    raw.connection.destroy();
  });

  test('reaches only its own runs', async () => {
    const mine = await turnpike.startAgent({ case: 'case-local' });
    const raw = await Raw.connect();
    for (const op of ['end', 'interrupt', 'finished']) {
      expect(await raw.ask(JSON.stringify({ id: 1, op, run_id: mine.run_id }))).toEqual(refusal('RUN_UNKNOWN', 1));
    }
    expect(await mine.submit(think())).toMatchObject({ outcome: 'SUCCESS' });
    raw.connection.destroy();
  });

  test(`may have ${PENDING_REQUESTS_MAX} pending requests; one more is refused`, async () => {
    const raw = await Raw.connect();
    const { result } = (await raw.ask(start)) as { result: { run_id: string } };
    const finished = (id: number): string => JSON.stringify({ id, op: 'finished', run_id: result.run_id });
    const ids = Array.from({ length: PENDING_REQUESTS_MAX }, (_, i) => i + 2);
    await raw.connection.send(`${ids.map(finished).join('\n')}\n`);
    expect(await raw.ask(finished(100))).toEqual(refusal('AGENT_BUSY', 100));
    raw.connection.destroy();
  });

  test('that leaves while its agent starts leaves no run behind', async () => {
    const earlier: string[] = [];
    for await (const { root_run_id } of turnpike.ledger.trees()) earlier.push(root_run_id);
    const raw = await Raw.connect();
    await raw.connection.send(`${start}\n`);
    raw.connection.destroy();
    // The server reads the request before it sees that the client has left.
    let states: (readonly string[])[] = [];
    do {
      await delay(5);
      states = [];
      for await (const { root_run_id, runs } of turnpike.ledger.trees())
        if (!earlier.includes(root_run_id)) states.push(runs.map(({ status }) => status));
    } while (states.length === 0 || states.flat().includes('running'));
    expect(turnpike.control?.connections).toBe(0);
    expect(states).toEqual([['failed', 'failed']]);
  });
});

describe('the protocol', () => {
  test.each([SOCKET_PATH_BYTES_MAX, SOCKET_PATH_BYTES_MAX + 1])('a path of %i bytes works', async (bytes) => {
    const base = tempFolder();
    const path = join(base, 's'.repeat(bytes - base.length - 1));
    const server = await listenAt({ path, connectionsMax: 1, idleMs: 1_000, onConnection: (it) => it.destroy() });
    const connection = await connectTo(path);
    expect(connection).not.toBeNull();
    await connection!.closed;
    await server.close();
  });

  test('closes an idle connection', async () => {
    const path = join(tempFolder(), 's');
    const server = await listenAt({ path, connectionsMax: 1, idleMs: 50, onConnection: () => undefined });
    const connection = (await connectTo(path))!;
    await connection.closed;
    await server.close();
  });

  test('never throws on arbitrary bytes, and never parses them as a request', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(parseMessage(RequestEnvelope, bytes)).toBeNull();
      }),
    );
  });

  test('carries every payload unchanged', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        expect(decodePayload(Buffer.from(bytes).toString('base64'))).toEqual(Buffer.from(bytes));
      }),
    );
    expect(['a', 'YQ', 'YQ==\n', 'YR==', 'é'].map(decodePayload)).toEqual([null, null, null, null, null]);
  });

  test('carries coded errors with class and code, and other errors without details', () => {
    const ours: CodedError[] = [
      new LedgerError({ code: 'LEDGER_UNAVAILABLE', message: 'm' }),
      new LedgerError({ code: 'LEDGER_CONFLICT', message: 'm' }),
      new LedgerError({ code: 'LEDGER_TAMPERED', message: 'm' }),
      new LedgerError({ code: 'LEDGER_BELOW_HEAD', message: 'm' }),
      new LedgerError({ code: 'LEDGER_LOCKED', message: 'm' }),
      new PolicyError({ code: 'POLICY_UNREADABLE', message: 'm' }),
      new PolicyError({ code: 'POLICY_INVALID', message: 'm' }),
      new PolicyError({ code: 'POLICY_INVALID', message: 'm' }),
      new RunError({ code: 'RUN_ENDED', message: 'm' }),
      new RunError({ code: 'RUN_UNKNOWN', message: 'm' }),
      new RunError({ code: 'AGENT_BUSY', message: 'm' }),
      new RunError({ code: 'INVALID_STATE_TRANSITION', message: 'm' }),
      new RunError({ code: 'CLOSED', message: 'm' }),
      new UsageError({ code: 'USAGE', message: 'm' }),
      new LedgerError({ code: 'LEDGER_ARCHIVED', message: 'm' }),
      new LedgerError({ code: 'LEDGER_ERASED', message: 'm' }),
      new SandboxError({ code: 'UNSUPPORTED_PLATFORM', message: 'm' }),
      new SandboxError({ code: 'SANDBOX_UNUSABLE', message: 'm' }),
    ];
    for (const error of ours) {
      const travelled = fromWireError(toWireError(error));
      expect(travelled).toEqual(error);
      expect(travelled.constructor).toBe(error.constructor);
    }
    expect(toWireError(new Error('/etc/secret'))).toEqual({
      code: 'INVARIANT',
      message: expect.not.stringMatching(/etc/),
    });
  });

  test('splits bytes into the same lines however they are chunked', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(fc.constantFrom(10, 13, 0, 255, 97))), async (parts) => {
        const chunks = parts.map((part) => Uint8Array.from(part));
        const text = Buffer.concat(chunks).toString('latin1');
        const expected = text.split('\n');
        if (expected.at(-1) === '') expected.pop();
        const lines: string[] = [];
        const source = (async function* () {
          for (const chunk of chunks) yield await Promise.resolve(chunk);
        })();
        for await (const each of splitLines(source, 1_000)) lines.push(Buffer.from(each).toString('latin1'));
        expect(lines).toEqual(expected);
      }),
    );
  });

  test('accepts a line up to the limit, and not one byte longer', async () => {
    const length = async (bytes: number): Promise<number[]> => {
      const found: number[] = [];
      const source = (async function* () {
        yield await Promise.resolve(Buffer.alloc(3, 97));
        yield Buffer.concat([Buffer.alloc(bytes - 3, 97), Buffer.from('\nb')]);
      })();
      for await (const each of splitLines(source, 8)) found.push(each.byteLength);
      return found;
    };
    expect(await length(8)).toEqual([8, 1]);
    await expect(length(9)).rejects.toMatchObject({ code: 'USAGE' });
  });
});
