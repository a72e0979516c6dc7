// A real home, served with the page: agents, tools, a session and a pending export, as in the demonstration.

import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import Type from 'typebox';
import { manifestPolicySource } from '../../../../../src/home/policy/manifest-policy-source.js';
import { nanoidIds } from '../../../../../src/system/nanoid-ids.js';
import { systemClock } from '../../../../../src/system/system-clock.js';
import { mintToken, tokenBook, type TokenGrant } from '../../../../../src/stores/keys/token-file.js';
import { winstonLog } from '../../../../../src/system/winston-log.js';
import { fillDemo } from '../../../../../src/interfaces/cli/demo.js';
import type { TokenRecord } from '../../../../../src/core/contract/token.js';
import type { AgentRun } from '../../../../../src/runtime/agents/agent-run.js';
import { createDeferred } from '../../../../../src/runtime/deferred.js';
import { defineTool } from '../../../../../src/runtime/effects/define-effects.js';
import { openTurnpike, type Turnpike } from '../../../../../src/host/turnpike.js';
import type { HttpServer } from '../../../../../src/interfaces/http/http-server.js';
import { serveTurnpike, type ServeOptions } from '../../../../../src/interfaces/http/serve.js';
import { writeContract } from '../../../../fixtures/bench.js';
import { CASE_AGENT, service, serviceEdit, slowTool } from '../../../../fixtures/service.js';
import { tempFolder } from '../../../../fixtures/temp-folder.js';
import { Tab, presentPage, type Opening } from './browser.js';

const APPROVED = `
approvals:
  - { for: export, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 60 }
  - { for: CALL_TOOL, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 60 }
`;
const edit: typeof serviceEdit = (name, text) => serviceEdit(name, text) + (name === 'actions' ? APPROVED : '');

export interface Staging {
  /** Filled like the demonstration. Default: true. */
  readonly full?: boolean;
  /** Whether calls of tools need an approval. Default: false. */
  readonly approved?: boolean;
  /** Further options of the service, from the folder of the stage. */
  readonly serving?: (folder: string) => Promise<Partial<ServeOptions>>;
}

/** The request for a vote may be long. */
const mail = defineTool({
  name: 'mail.send',
  input: Type.Object({ to: Type.Array(Type.String()), text: Type.String() }, { additionalProperties: false }),
  output: Type.Object({}, { additionalProperties: false }),
  run: () => Promise.resolve({}),
});

export class Stage {
  readonly folder: string;
  readonly turnpike: Turnpike;
  server: HttpServer;
  /** The slow tool: reports its call, and waits for permission to answer. */
  readonly entered = createDeferred<null>();
  readonly release = createDeferred<null>();
  #records: readonly TokenRecord[] = [];
  #serving: Partial<ServeOptions> = {};

  private constructor(folder: string, turnpike: Turnpike) {
    this.folder = folder;
    this.turnpike = turnpike;
    this.server = { url: '', port: 0, close: () => Promise.resolve() };
  }

  static async open({ full = true, approved = false, serving }: Staging = {}): Promise<Stage> {
    const folder = tempFolder('stage');
    writeContract(join(folder, 'contract'), { edit: approved ? edit : exportsApproved });
    const { tools, targets } = service();
    const [entered, release] = [createDeferred<null>(), createDeferred<null>()];
    const turnpike = await openTurnpike({
      home: join(folder, 'home'),
      policies: manifestPolicySource(join(folder, 'contract')),
      tools: [...tools, mail, slowTool(entered, release)],
      targets,
      log: winstonLog('silent'),
    });
    const stage = new Stage(folder, turnpike);
    Object.assign(stage, { entered, release });
    if (full) await fillDemo(turnpike);
    stage.#serving = (await serving?.(folder)) ?? {};
    await stage.serve();
    return stage;
  }

  /** Starts to serve, or serves again on the same port. */
  async serve(turnpike = this.turnpike): Promise<void> {
    this.server = await serveTurnpike({
      turnpike,
      host: '127.0.0.1',
      port: this.server.port,
      storedTokens: false,
      tokens: tokenBook(() => this.#records, systemClock()),
      page: await presentPage(),
      log: winstonLog('silent'),
      ...this.#serving,
    });
  }

  token(grant: Partial<TokenGrant> = {}): string {
    const whole = { actor: 'operator', role: 'ATTORNEY_ADMIN', rights: ['observe', 'approve'] as const, ...grant };
    const { token, record } = mintToken(whole, systemClock(), nanoidIds());
    this.#records = [...this.#records, record];
    return token;
  }

  /** Revokes every token. */
  revokeTokens(): void {
    this.#records = [];
  }

  get home(): string {
    return join(this.folder, 'home');
  }

  /** Accepts the tokens of another stage. */
  takeTokensOf(other: Stage): void {
    this.#records = [...this.#records, ...other.#records];
  }

  /** The page at one of its views, as the address of the command opens it. */
  tab(view = '', opening: Opening & { readonly path?: string; readonly token?: string } = {}): Promise<Tab> {
    const { path = '/', token = this.token(), ...rest } = opening;
    return Tab.open(`${this.server.url}${path}#token=${token}${view === '' ? '' : `&${view}`}`, rest);
  }

  /** An agent in the lane of the tools. */
  agent(): Promise<AgentRun> {
    return this.turnpike.startAgent({ ...CASE_AGENT, case: 'case-tools' });
  }

  /** The agent run of a case. */
  async agentOf(case_id: string): Promise<string> {
    for await (const { type, text } of this.turnpike.ledger.log()) {
      if (type !== 'run_created') continue;
      const { body } = JSON.parse(text) as { body: { run_id: string; run_kind: string; case_id?: string } };
      if (body.run_kind === 'agent' && body.case_id === case_id) return body.run_id;
    }
    throw new Error(`no agent has worked in ${case_id}`);
  }

  /** The first step of a run with this outcome. */
  async stepOf(run_id: string, outcome: string): Promise<number> {
    for await (const { type, text } of this.turnpike.ledger.log()) {
      if (type !== 'step_trace') continue;
      const { body } = JSON.parse(text) as { body: { run_id: string; outcome: string; step_index: number } };
      if (body.run_id === run_id && body.outcome === outcome) return body.step_index;
    }
    throw new Error(`no step of ${run_id} is ${outcome}`);
  }

  /** The first entry that satisfies a condition. */
  async find(is: (text: string) => boolean): Promise<number> {
    for await (const { text, log_index } of this.turnpike.ledger.log()) if (is(text)) return log_index;
    throw new Error('there is no such entry');
  }

  async count(is: (text: string) => boolean): Promise<number> {
    let count = 0;
    for await (const { text } of this.turnpike.ledger.log()) if (is(text)) count += 1;
    return count;
  }

  /** The files of the home, copied while it is idle. */
  copied(): string {
    const to = tempFolder('copy');
    cpSync(this.home, to, { recursive: true, filter: (path) => !path.endsWith('.sock') });
    return to;
  }

  async close(): Promise<void> {
    await this.server.close();
    await this.turnpike.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const exportsApproved: typeof serviceEdit = (name, text) =>
  serviceEdit(name, text) + (name === 'actions' ? APPROVED.replace(/.*CALL_TOOL.*\n/, '') : '');

let drawn = 0;

/** A raw proposal with a new id. */
export function proposal(action: string, args: object = {}, reasoning = 'A test.'): string {
  drawn += 1;
  const id = `00000000-0000-4000-9000-${String(drawn).padStart(12, '0')}`;
  return JSON.stringify({ schema_version: '1.0.0', id, reasoning, action, args });
}
