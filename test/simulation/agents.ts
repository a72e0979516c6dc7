// The clients of the system: they start agents, submit good and bad proposals, repeat requests, request unknown
// objects, and end their runs, all at random.

import type { AgentOptions, AgentRun } from '../../src/runtime/agents/agent-run.js';
import { Calls, type Call } from './calls.js';
import { payload, writing } from './payloads.js';
import type { Process } from './process.js';
import { Random } from './random.js';
import type { World } from './world.js';

/** More proposals than may be queued for one agent (D4). */
const BURST = 70;
const KNOWN_MAX = 24;
const CASES = ['case-a', 'case-b', 'case-c'];
/** The case in which agents share a quota. */
const ONE_CASE = ['case-a'];

interface Sent {
  readonly run_id: string;
  readonly payload: Uint8Array;
  readonly id: string;
  readonly inputId: string | undefined;
}

export class Agents {
  readonly calls: Calls;
  readonly #world: World;
  readonly #random: Random;
  /** The agents attached in the current process. */
  #held: AgentRun[] = [];
  /** Recent submissions, to be repeated. */
  #sent: Sent[] = [];
  #inputs = 0;

  constructor(world: World) {
    this.#world = world;
    this.calls = new Calls(world);
    this.#random = new Random(`${world.seed}/agents`);
  }

  get held(): number {
    return this.#held.length;
  }

  /** A new process: handles of the old one are invalid. */
  forget(): void {
    this.#held = [];
    this.calls.forgetDead();
  }

  start(process: Process): string {
    const options = this.#options();
    const wrong = options.case === '../x';
    const call: Call = { kind: 'start', process, run_id: '', wrong };
    const { turnpike } = process;
    if (turnpike === null) return 'start nowhere';
    this.calls.follow(
      call,
      () => turnpike.startAgent(options),
      (agent) => {
        const life = this.#world.ledger.lives.get(agent.run_id);
        const { history } = this.#world;
        if (life === undefined) history.report('acknowledged.durable', `${agent.run_id} was started, but is not there`);
        history.note(`started ${agent.run_id}`);
        this.#hold(process, agent);
      },
    );
    return `start ${JSON.stringify(options)}`;
  }

  submit(process: Process): string {
    const agent = this.#random.pick(this.#held);
    return this.#send(process, agent, this.#next(agent.run_id));
  }

  /** Repeats an input id, or a proposal, or sends another one with its id. */
  repeat(process: Process): string {
    if (this.#sent.length === 0) return this.submit(process);
    const sent = this.#random.pick(this.#sent);
    const agent = this.#held.find(({ run_id }) => run_id === sent.run_id) ?? this.#random.pick(this.#held);
    const form = this.#random.weighted({ input: 4, payload: 2, id: 2 });
    const again = { ...sent, run_id: agent.run_id };
    if (form === 'input' && sent.inputId !== undefined) return this.#send(process, agent, again);
    if (form === 'payload') return this.#send(process, agent, { ...again, inputId: undefined });
    return this.#send(process, agent, { ...again, payload: payload(this.#random, sent.id), inputId: undefined });
  }

  /** By run id: live runs, ended ones, and ones that never existed. */
  submitById(process: Process): string {
    const { turnpike } = process;
    if (turnpike === null) return 'submit nowhere';
    const alive = [...this.#world.ledger.lives.agents];
    const known = alive.length > 0 && this.#random.chance(0.7) ? alive : this.#sent.map((sent) => sent.run_id);
    const unknown = known.length === 0 || this.#random.chance(0.1);
    const run_id = unknown ? `run_${String(this.#random.below(50)).padStart(21, 'x')}.1` : this.#random.pick(known);
    const sent = this.#next(run_id);
    const { inputId } = sent;
    const options = inputId === undefined ? {} : { inputId };
    this.#follow(process, sent, async () => JSON.stringify(await turnpike.submit(run_id, sent.payload, options)));
    return `submit by id to ${run_id}`;
  }

  burst(process: Process): string {
    const agent = this.#random.pick(this.#held);
    for (let i = 0; i < BURST; i += 1) this.#send(process, agent, this.#next(agent.run_id));
    return `burst on ${agent.run_id}`;
  }

  /** Every attached agent writes a file, concurrently. */
  writeTogether(process: Process): string {
    for (const agent of this.#held) {
      const id = this.#random.uuid();
      this.#send(process, agent, { ...this.#next(agent.run_id), payload: writing(this.#random, id), id });
    }
    return `${this.#held.length} agents write`;
  }

  finish(process: Process): string {
    const agent = this.#random.pick(this.#held);
    const kind = this.#random.pick(['end', 'cancel', 'interrupt'] as const);
    const reason = kind === 'cancel' ? `no. ${this.#random.below(9)}: enough` : '';
    const answer = () => (kind === 'cancel' ? agent.cancel(reason) : agent[kind]());
    this.calls.follow({ kind, process, run_id: agent.run_id }, answer, (ending) => {
      this.calls.ended(process, ending);
    });
    return `${kind} ${agent.run_id}`;
  }

  /** Resumes a run of an earlier process, or one that is attached already. */
  find(process: Process): string {
    const { turnpike } = process;
    const { lives } = this.#world.ledger;
    if (turnpike === null || lives.agents.size === 0) return 'find no agent';
    const run_id = this.#random.pick([...lives.agents]);
    this.calls.follow(
      { kind: 'find', process, run_id },
      () => turnpike.agent(run_id),
      (agent) => {
        if (agent !== null) this.#hold(process, agent);
        else if (lives.agents.has(run_id) && !process.broken) {
          this.#world.history.report('fold.same', `${run_id} is alive in the ledger, but not in memory`);
        }
      },
    );
    return `find ${run_id}`;
  }

  /** Reads run records concurrently with everything else. */
  look(process: Process): string {
    const { turnpike } = process;
    const [run_id] = this.#world.ledger.lives.agents;
    if (turnpike === null || run_id === undefined) return 'look at nothing';
    this.calls.follow(
      { kind: 'look', process, run_id },
      () => turnpike.ledger.run(run_id),
      (record) => {
        const life = this.#world.ledger.lives.get(run_id);
        if (record !== null && record.run_id === life?.created.run_id) return;
        this.#world.history.report('fold.same', `${run_id} has no record`);
      },
    );
    return `look at ${run_id}`;
  }

  /** Most callers release a run that has ended; some continue to query it. */
  #letGo(ended: AgentRun): void {
    if (this.#random.chance(0.9)) this.#held = this.#held.filter((agent) => agent !== ended);
  }

  #hold(process: Process, agent: AgentRun): void {
    if (this.#world.process !== process) return;
    this.#held = this.#held.filter(({ run_id }) => run_id !== agent.run_id);
    this.#held.push(agent);
    if (this.#held.length > KNOWN_MAX) this.#held.shift();
    agent.finished.then(
      (ending) => {
        this.calls.ended(process, ending);
        this.#letGo(agent);
      },
      () => undefined,
    );
  }

  #next(run_id: string): Sent {
    const id = this.#random.chance(0.1) ? this.#random.uuid().toUpperCase() : this.#random.uuid();
    this.#inputs += 1;
    const inputId = this.#random.chance(0.3) ? `in-${this.#inputs}` : undefined;
    return { run_id, payload: payload(this.#random, id), id, inputId };
  }

  #send(process: Process, agent: AgentRun, sent: Sent): string {
    const { inputId } = sent;
    this.#follow(process, sent, () => agent.respond(sent.payload, inputId === undefined ? {} : { inputId }));
    return `submit ${inputId ?? ''} to ${agent.run_id}`;
  }

  #follow(process: Process, sent: Sent, answer: () => Promise<string>): void {
    const { run_id, inputId } = sent;
    this.#sent.push(sent);
    if (this.#sent.length > KNOWN_MAX) this.#sent.shift();
    const call: Call = {
      kind: 'submit',
      process,
      run_id,
      payload: sent.payload,
      ...(inputId === undefined ? {} : { inputId }),
    };
    this.calls.follow(call, answer, (response, open) => {
      this.calls.responded(open, response);
    });
  }

  #options(): AgentOptions {
    const random = this.#random;
    const remote = random.chance(0.5);
    return {
      case: random.chance(0.02) ? '../x' : random.pick(this.#world.quota === null ? CASES : ONE_CASE),
      link: remote ? 'remote' : 'attached',
      ...(remote ? { idleMs: random.pick([1, 500, 5_000, 900_000]) } : {}),
      ...(random.chance(0.06) ? { lane: 'WRITE_INTAKE_ARTIFACTS', role: 'INTAKE_AGENT' } : {}),
      ...(random.chance(0.03) ? { lane: 'NO_SUCH_LANE' } : {}),
      ...(random.chance(0.1) ? { exposure: 'decision' as const } : {}),
      ...(random.chance(0.2) ? { correlation: `cor-${random.below(1_000)}` } : {}),
      ...(random.chance(0.1) ? { scope: { coa_version: `v${random.below(9)}` } } : {}),
      ...(random.chance(0.1) ? { taxonomy: { coa: 'v1', tags: 'v2', entities: 'v3' } } : {}),
    };
  }
}
