// The HTTP service on a whole Turnpike and a real socket.

import { mintToken, tokenBook, type TokenGrant } from '../../../src/stores/keys/token-file.js';
import { nanoidIds } from '../../../src/system/nanoid-ids.js';
import { systemClock } from '../../../src/system/system-clock.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import type { TokenRecord } from '../../../src/core/contract/token.js';
import { serveTurnpike, type ServeOptions, type TurnpikeServer } from '../../../src/interfaces/http/serve.js';
import { Bench, type BenchOptions } from '../../fixtures/bench.js';
import { TEST_CASE } from '../../fixtures/in-one-case.js';
import { ledgerSource } from '../../fixtures/ledger-source.js';

export class HttpBench {
  readonly bench: Bench;
  readonly server: TurnpikeServer;
  readonly #records: { list: TokenRecord[] };

  private constructor(bench: Bench, server: TurnpikeServer, records: { list: TokenRecord[] }) {
    this.bench = bench;
    this.server = server;
    this.#records = records;
  }

  static async open(options: BenchOptions = {}, serving: Partial<ServeOptions> = {}): Promise<HttpBench> {
    return HttpBench.on(await Bench.open(options), serving);
  }

  /** Uses a home directory that is open already, and closes it with the service. */
  static on(bench: Bench, serving: Partial<ServeOptions> = {}): Promise<HttpBench> {
    return HttpBench.#served(bench, { list: [] }, serving);
  }

  /** Stops this service, and starts a new one with the same home directory and tokens. */
  async reopened(): Promise<HttpBench> {
    await this.server.close();
    await this.bench.turnpike.close();
    const bench = await Bench.reopen(this.bench, { clock: this.bench.clock, ids: nanoidIds() });
    return HttpBench.#served(bench, this.#records);
  }

  static async #served(
    bench: Bench,
    records: { list: TokenRecord[] },
    serving: Partial<ServeOptions> = {},
  ): Promise<HttpBench> {
    const server = await serveTurnpike({
      turnpike: bench.turnpike,
      host: '127.0.0.1',
      port: 0,
      storedTokens: false,
      tokens: tokenBook(() => records.list, systemClock()),
      inspector: ledgerSource(bench.turnpike.ledger),
      log: winstonLog('silent'),
      // The test clock fires no timers, so no work may wait for its share of the time.
      admission: { bulkShare: 1_000 },
      agent: { case: TEST_CASE },
      ...serving,
    });
    return new HttpBench(bench, server, records);
  }

  /** Creates a token that is valid at once. */
  token(grant: Partial<TokenGrant> = {}): string {
    const whole = { actor: 'agent-one', role: 'SANDBOX_AGENT', rights: ['act'] as const, ...grant };
    const { token, record } = mintToken(whole, systemClock(), nanoidIds());
    this.#records.list = [...this.#records.list, record];
    return token;
  }

  revokeAll(): void {
    this.#records.list = [];
  }

  ask(path: string, token: string, init: RequestInit & { readonly json?: unknown } = {}): Promise<Response> {
    const { json, ...rest } = init;
    const body = json === undefined ? rest.body : JSON.stringify(json);
    const isWhole = path.startsWith('/access/') || path.startsWith('/.well-known/');
    return fetch(`${this.server.url}${isWhole ? '' : '/api/v1'}${path}`, {
      ...rest,
      method: rest.method ?? (body == null ? 'GET' : 'POST'),
      ...(body == null ? {} : { body }),
      headers: {
        authorization: `Bearer ${token}`,
        ...(body == null ? {} : { 'content-type': 'application/json' }),
        ...(rest.headers as Record<string, string> | undefined),
      },
    });
  }

  /** Starts an agent run. */
  async start(token: string, options: object = {}): Promise<string> {
    const response = await this.ask('/agents', token, { json: options });
    return ((await response.json()) as { run_id: string }).run_id;
  }

  async close(): Promise<void> {
    await this.server.close();
    await this.bench.close();
  }
}

let ids = 0;

/** A raw proposal with a new id. */
export const proposal = (action: string, args: object = {}): string => {
  ids += 1;
  const id = `00000000-0000-4000-8000-${String(ids).padStart(12, '0')}`;
  return JSON.stringify({ schema_version: '1.0.0', id, reasoning: 'A test.', action, args });
};

export const codeOf = async (response: Response): Promise<string> =>
  `${response.status} ${((await response.json()) as { code?: string }).code ?? ''}`;
