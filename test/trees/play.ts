// Plays a plot on a real kernel tree: machines and policy are the shipped ones, only the world is simulated. The output
// is stored as in a ledger, with the content of the inputs.

import type { Command } from '../../machines/emission.js';
import { artifactRef, type Artifact } from '../../src/core/contract/artifact-ref.js';
import { sha256 } from '../../src/core/contract/hash.js';
import type { EffectResult, PathFact } from '../../src/core/contract/run/effect.js';
import type { ProposalMark, RecordedInput, RunCreated, SeenProposal } from '../../src/core/contract/run/entry.js';
import type { JsonObject } from '../../src/core/contract/json.js';
import type { OverlayFact } from '../../src/core/contract/policy/overlay.js';
import type { StepTrace } from '../../src/core/contract/run/step-trace.js';
import type { Decision, TreeInput } from '../../src/kernel/decision.js';
import { Tree } from '../../src/kernel/tree.js';
import { pinned, type Pinned } from './policies.js';
import { actFor, agentFor, budgetFor, causeFor, overlayFor, startFor, statusFor, voterFor } from './choices.js';
import type { Plot, Turn } from './turns.js';
import { withPersons } from '../fixtures/tree.js';

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;
type Timeless = DistributiveOmit<RecordedInput, 'time' | 'input_id'>;

const EPOCH = Date.parse('2026-01-01T00:00:00.000Z');
const CLOSING_TURNS_MAX = 80;
export const ROOT = 'run_randomtree';

/** The whole life of one tree. */
export interface Played {
  readonly plot: Plot;
  readonly pinned: Pinned;
  readonly inputs: readonly TreeInput[];
  readonly decisions: readonly Decision[];
  readonly tree: Tree;
}

/** `under` another policy, if it is not the plot's own. */
export function play(plot: Plot, under: Pinned = pinned(plot.policy)): Played {
  const player = new Player(plot, under);
  player.live();
  return player;
}

class Player implements Played {
  readonly plot: Plot;
  readonly pinned: Pinned;
  readonly tree = new Tree(ROOT);
  readonly inputs: TreeInput[] = [];
  readonly decisions: Decision[] = [];
  readonly #created: RunCreated[] = [];
  readonly #ended = new Set<string>();
  readonly #marks = new Map<string, ProposalMark>();
  readonly #steps = new Map<string, { trace: StepTrace; response: string }>();
  readonly #payloads: string[] = [];
  readonly #proposed = new Map<string, Parameters<typeof actFor>[0]>();
  readonly #asked: { readonly run_id: string; readonly digest: string }[] = [];
  #overlay: OverlayFact | null = null;
  #epoch = 0;
  #now = EPOCH;
  #proposals = 0;

  constructor(plot: Plot, under: Pinned) {
    this.plot = plot;
    this.pinned = under;
  }

  live(): void {
    this.#open();
    // Concurrent children from the start: nothing happens to a tree without agents.
    this.#turn({ t: 'agent', role: 0, lane: this.plot.lane, remote: false, limit: 0 });
    for (const turn of this.plot.turns) if (!this.tree.hasEnded) this.#turn(turn);
    for (let i = 0; this.plot.close && !this.tree.hasEnded && i < CLOSING_TURNS_MAX; i += 1) this.#close();
  }

  #close(): void {
    const [command] = this.tree.pending;
    if (command?.kind === 'gather') this.#facts(command, 0);
    else if (command !== undefined) this.#result(command.run_id, 0);
    else this.#send({ kind: 'cancel', run_id: ROOT, reason: 'enough' });
  }

  #turn(turn: Turn): void {
    switch (turn.t) {
      case 'agent': {
        this.#send({ kind: 'start_agent', run_id: ROOT, ...agentFor(turn), ...this.#given(turn) });
        return;
      }
      case 'propose': {
        this.#propose(turn);
        return;
      }
      case 'facts':
      case 'answer': {
        this.#answer(turn);
        return;
      }
      case 'cancel': {
        this.#send({ kind: 'cancel', run_id: this.#anyRun(turn.run), reason: 'because' });
        return;
      }
      case 'end':
      case 'interrupt': {
        this.#send({ kind: turn.t, run_id: this.#anyRun(turn.run) });
        return;
      }
      case 'wake': {
        this.#wake(turn);
        return;
      }
      case 'start': {
        const { request, ...start } = startFor(turn, this.#case);
        const artifact = this.#artifact('request', request, this.#case);
        this.#send({ ...start, run_id: ROOT, request: artifactRef(artifact), overlay: this.#overlay }, [artifact]);
        return;
      }
      case 'vote': {
        this.#vote(turn);
        return;
      }
      case 'resolve': {
        const run_id = one(this.tree.unsettled, turn.pick)?.context.run_id ?? this.#anyRun(turn.pick);
        const by = { actor: { actor_type: 'human', actor_id: 'anna' }, role_id: 'ATTORNEY_ADMIN', note: '' } as const;
        this.#send({ kind: 'resolve', run_id, outcome: turn.done ? 'done' : 'not_executed', ...by });
        return;
      }
      case 'overlay':
        this.#epoch += 1;
        this.#overlay = overlayFor(turn.rule, this.#epoch);
        return undefined;
      case 'wait':
        this.#now += turn.s * 1_000;
        return undefined;
      case 'stray': {
        this.#stray(turn);
        return;
      }
    }
  }

  #open(): void {
    const { cased, problem, scoped } = this.plot;
    const [lanes, roles, actions, machines] = this.pinned.materials.map(artifactRef);
    if (!lanes || !roles || !actions || !machines) throw new Error('a policy has four parts');
    const [one, two, three] = [lanes, roles, actions].map((artifact, i) =>
      i === problem
        ? { problem: 'dirty' as const, artifact }
        : { git_sha: 'abc'[i]?.repeat(40) ?? '', sha256: artifact.hash_sha256, source: 'manifest' as const, artifact },
    );
    if (!one || !two || !three) throw new Error('a policy has three files');
    const scope: Record<string, string> = { promotion_ticket_id: 'T-1', export_reason: 'discovery' };
    this.#send(
      {
        kind: 'open',
        run_id: ROOT,
        correlation_id: 'cor_random',
        case_id: cased ? 'case-1' : null,
        taxonomy_versions: scoped ? { coa: '7' } : null,
        // A scope that fits one mediated run, and therefore not its db_write child.
        scope: scoped ? { ...scope, run_id: `${ROOT}.1.1` } : scope,
        policies: { lanes: one, roles: two, actions: three },
        machines,
      },
      this.pinned.materials,
    );
  }

  #given({ remote, limit }: Extract<Turn, { t: 'agent' }>) {
    const link = remote ? ('remote' as const) : ('attached' as const);
    return { link, idle_ms: remote ? 60_000 : null, budget: budgetFor(limit), overlay: this.#overlay };
  }

  #propose({ agent, act, n, path, tokens, again, same }: Extract<Turn, { t: 'propose' }>): void {
    const agents = this.#created.filter(({ run_kind, run_id }) => run_kind === 'agent' && !this.#ended.has(run_id));
    const idle = agents.filter(({ run_id }) => !this.tree.isLive(`${run_id}/step`));
    const run_id = one(idle.length > 0 ? idle : agents, agent)?.run_id;
    if (run_id === undefined) {
      this.#stray({ t: 'stray', what: 0, run: agent });
      return;
    }
    this.#proposals += 1;
    const id = `00000000-0000-4000-8000-${String(this.#proposals).padStart(12, '0')}`;
    const before = this.#proposed.get(run_id);
    const what = same && before !== undefined ? before : { act, n, path };
    this.#proposed.set(run_id, what);
    const fresh = actFor(what, id);
    const payload = again ? (one(this.#payloads, n) ?? fresh) : fresh;
    this.#payloads.push(payload);
    const { seen, response } = this.#seen(payload, run_id);
    const artifact = this.#artifact('raw_payload', payload, this.#caseOf(run_id));
    const input = { kind: 'proposal', run_id, payload: artifactRef(artifact), seen, overlay: this.#overlay } as const;
    this.#send({ ...input, tokens: tokens === 0 ? null : tokens }, response ? [artifact, response] : [artifact]);
  }

  /** What the engine would add to this proposal (C19). */
  #seen(payload: string, run_id: string): { seen: SeenProposal | null; response: Artifact | null } {
    const id = this.tree.proposalKey(Buffer.from(payload));
    const mark = id === null ? undefined : this.#marks.get(id);
    if (mark === undefined) return { seen: null, response: null };
    const known = { step_index: mark.step_index, run_id: mark.run_id, payload_sha256: mark.payload_sha256 };
    const step = mark.run_id === run_id ? this.#steps.get(`${run_id} ${mark.step_index}`) : undefined;
    if (this.pinned.policy.knobs.duplicate_proposal_ids !== 'replay' || step === undefined) {
      return { seen: { ...known, outcome: null, error_code: null, response: null }, response: null };
    }
    const response = this.#artifact('response', step.response, this.#caseOf(run_id));
    const { outcome, error_code } = step.trace;
    return { seen: { ...known, outcome, error_code, response: artifactRef(response) }, response };
  }

  #answer(turn: Extract<Turn, { t: 'facts' | 'answer' }>): void {
    const command = one(this.tree.pending, turn.pick);
    if (command === undefined) return;
    const how = turn.t === 'answer' ? turn.how : turn.stands;
    if (command.kind === 'gather') this.#facts(command, how);
    else this.#result(command.run_id, how);
  }

  #facts({ run_id, request }: Extract<Command, { kind: 'gather' }>, stands: number): void {
    const paths = request.paths.map((): PathFact => statusFor(stands));
    const usage = request.usage ? { bytes: 10, files: 1 } : null;
    this.#send({ kind: 'facts', run_id, facts: { paths, usage } });
  }

  #result(run_id: string, how: number): void {
    const result: EffectResult = causeFor(how);
    if (result.status !== 'done') {
      const cause = result.status === 'failed' ? result.cause : null;
      this.#send({ kind: 'result', run_id, status: result.status, cause, result: null, settled: false });
      return;
    }
    const artifact = this.#artifact('result', JSON.stringify(result.result), this.#caseOf(run_id));
    const ref = artifactRef(artifact);
    this.#send({ kind: 'result', run_id, status: 'done', cause: null, result: ref, settled: false }, [artifact]);
  }

  /** Timers fire when they are due. One that fires early, because a clock was wrong, changes nothing. */
  #wake({ pick, early }: Extract<Turn, { t: 'wake' }>): void {
    const timer = one(this.tree.timers, pick);
    if (timer === undefined) return;
    // The next input takes one second more.
    if (!early) this.#now = Math.max(this.#now, Date.parse(timer.at) - 1_000);
    this.#send({ kind: 'wake', run_id: timer.run_id, overlay: this.#overlay });
  }

  #vote({ asked, who, no, twist }: Extract<Turn, { t: 'vote' }>): void {
    const request = one(this.#asked, this.#asked.length - 1 - (asked % Math.max(1, this.#asked.length)));
    // A stranger may vote on an unknown request; most votes are about an existing one.
    if (request === undefined && twist > 2) return;
    const digest = twist === 1 ? sha256('another') : (request?.digest ?? sha256('nothing'));
    const other = one(this.#asked, asked + 1)?.digest ?? digest;
    const run_id = twist === 2 ? this.#anyRun(asked) : (request?.run_id ?? `${ROOT}.1`);
    const approver = voterFor(who, this.#created.find((run) => run.run_id === run_id)?.actor.actor_id);
    const digests = twist === 3 ? [digest, digest] : twist === 4 ? [other, digest] : [digest];
    const decision = no ? ('reject' as const) : ('approve' as const);
    this.#send({ kind: 'vote', run_id, digests, decision, approver, overlay: this.#overlay });
    // Repeats the same ballot: a repeated one does not count.
    if (twist === 5) this.#send({ kind: 'vote', run_id, digests, decision, approver, overlay: this.#overlay });
  }

  /** Inputs that nothing waits for, and inputs for which the lifecycle has no transition. */
  #stray({ what, run }: Extract<Turn, { t: 'stray' }>): void {
    const run_id = this.#anyRun(run);
    if (what === 0) {
      this.#result(run_id, run);
      return;
    }
    if (what === 1) {
      this.#send({ kind: 'facts', run_id, facts: { paths: [], usage: null } });
      return;
    }
    if (what === 2) {
      this.#send({ kind: 'wake', run_id, overlay: this.#overlay });
      return;
    }
    if (what === 3) {
      this.#open();
      return;
    }
    if (what === 4) {
      this.#turn({ t: 'agent', role: run, lane: run, remote: false, limit: 0 });
      return;
    }
    const artifact = this.#artifact('raw_payload', '{', this.#caseOf(run_id));
    const nothing = { seen: null, tokens: null, overlay: this.#overlay };
    this.#send({ kind: 'proposal', run_id, payload: artifactRef(artifact), ...nothing }, [artifact]);
  }

  #send(input: Timeless, materials: readonly Artifact[] = []): void {
    this.#now += 1_000;
    const time = new Date(this.#now).toISOString();
    const recorded = { ...withPersons(input), input_id: `in-${this.inputs.length + 1}`, time };
    const taken: TreeInput = { recorded, materials };
    this.inputs.push(taken);
    const decision = this.tree.decide(taken);
    this.decisions.push(decision);
    this.#note(decision);
  }

  /** Records what the engine's store would. */
  #note({ marks, entries, replies, ended }: Decision): void {
    for (const mark of marks) this.#marks.set(mark.proposal_id, mark);
    for (const { run_id } of ended) this.#ended.add(run_id);
    for (const { entry } of entries) {
      if (entry.type === 'run_created') this.#created.push(entry.body);
      if (entry.type === 'audit_event' && entry.body.authz?.rule_id.startsWith('approval.') === true) {
        const { run_id, parent_run_id, target, request_hash_sha256: digest } = entry.body;
        // A mediated run emits the request that its agent has made; a promotion or an export its own.
        const asker = parent_run_id === ROOT ? run_id : (parent_run_id ?? run_id);
        if (target?.name !== 'approval' && digest !== undefined) this.#asked.push({ run_id: asker, digest });
      }
      if (entry.type === 'step_trace') {
        const reply = replies.find(({ response }) => sha256(response) === entry.body.response_sha256);
        const step = { trace: entry.body, response: reply?.response ?? '' };
        this.#steps.set(`${entry.body.run_id} ${entry.body.step_index}`, step);
      }
    }
  }

  get #case(): string | null {
    return this.#created[0]?.case_id ?? null;
  }

  #caseOf(run_id: string): string | null {
    return this.#created.find((run) => run.run_id === run_id)?.case_id ?? null;
  }

  #anyRun(n: number): string {
    return one([...this.#created.map(({ run_id }) => run_id).reverse(), `${ROOT}.1.1`, 'run_nobody'], n) ?? ROOT;
  }

  #artifact(kind: Artifact['kind'], content: string | JsonObject, case_id: string | null): Artifact {
    const text = typeof content === 'string' ? content : JSON.stringify(content);
    return { kind, case_id, bytes: Buffer.from(text) };
  }
}

const one = <T>(values: readonly T[], n: number): T | undefined => values[n % Math.max(1, values.length)];
