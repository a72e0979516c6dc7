// The invariants, checked as the ledger grows: each entry is checked once, when it is durable.

import type { LedgerModel } from '../fixtures/ledger-model/ledger-model.js';
import type { Effect, EffectResult } from '../../src/core/contract/run/effect.js';
import { NO_PREV, type Entry, type RecordedInput, type ResultInput } from '../../src/core/contract/run/entry.js';
import { sha256 } from '../../src/core/contract/hash.js';
import { isTerminal } from '../../src/core/contract/run/run-context.js';
import { Fold } from '../../src/kernel/fold.js';
import { leafHash } from '../../src/core/ledger/proof/merkle.js';
import type { StoredEntry } from '../../src/engine/ports/ledger/ledger-store.js';
import type { History } from './history.js';
import { Lives } from './lives.js';
import { isLocalRead } from './sandbox.js';
import { Steps } from './steps.js';

/** Ended trees that are still kept folded: only refusals can follow, and a tree is folded again for them. */
const ENDED_FOLDS_MAX = 32;

interface Chain {
  readonly seq: number;
  readonly hash: string;
  /** A proposal whose next entry shows whether it was refused. */
  readonly incoming: Extract<RecordedInput, { kind: 'proposal' }> | null;
}

interface Options {
  /** The disk as an auditor would read it. */
  readonly disk: LedgerModel;
  readonly history: History;
  /** False for a planted bug of the machines themselves, which would fold it the same way. */
  readonly folding: boolean;
}

export class LedgerWatch {
  readonly #options: Options;
  readonly lives: Lives;
  readonly steps: Steps;
  readonly #chains = new Map<string, Chain>();
  readonly #folds = new Map<string, Fold>();
  readonly #ended = new Set<string>();
  /** Effects that were tried, and the results of those that were done, by idempotency key. */
  readonly #tried = new Set<string>();
  readonly #done = new Map<string, EffectResult>();
  /** Runs whose result is in the ledger. */
  readonly #answered = new Set<string>();
  size = 0;

  constructor(options: Options) {
    this.#options = options;
    this.lives = new Lives(options.history);
    this.steps = new Steps(options.history, this.lives);
  }

  get trees(): number {
    return this.#chains.size;
  }

  /** Processes what has become durable. */
  sync(): void {
    const { disk } = this.#options;
    for (let stored = disk.entry(this.size); stored !== undefined; stored = disk.entry(this.size)) {
      this.size += 1;
      this.#take(stored);
    }
  }

  /** Called before an effect runs. */
  performing(effect: Effect, process: number): void {
    this.sync();
    const { history } = this.#options;
    const { run_id, idempotency_key, action } = effect;
    history.note(`process ${process} performs ${action} of ${run_id}`);
    if (isLocalRead(action)) return;
    const life = this.lives.get(run_id);
    if (life?.judged !== 'allow' || isTerminal(life.state)) {
      history.report(
        'effect.allowed',
        `${action} of ${run_id} is performed while ${life?.state ?? 'nothing'} is durable`,
      );
    }
    if (this.#tried.has(idempotency_key) || this.#answered.has(run_id)) {
      history.report('effect.once', `${action} of ${run_id} is performed once more`);
    }
    this.#tried.add(idempotency_key);
  }

  /** Called after an effect has run: the world has changed. */
  performed({ idempotency_key, run_id, action }: Effect, result: EffectResult): void {
    if (isLocalRead(action)) return;
    if (this.#answered.has(run_id)) {
      this.#options.history.report('effect.truth', `${action} of ${run_id} happens after its result was recorded`);
    }
    this.#done.set(idempotency_key, result);
  }

  /** @returns the result of the effect, or null if it has not happened */
  effectResult(idempotency_key: string): EffectResult | null {
    return this.#done.get(idempotency_key) ?? null;
  }

  /** D3, D8, C35: the work that an opening must have completed. */
  opened(): void {
    this.sync();
    const { history, folding } = this.#options;
    for (const [tree_id, fold] of this.#folds) {
      const pending = folding ? fold.tree.pending.length : 0;
      if (pending > 0) history.report('reopen.settled', `${tree_id} has ${pending} commands without a result`);
    }
    for (const run_id of this.lives.agents) {
      const link = this.lives.get(run_id)?.created.link;
      if (link !== 'remote') history.report('reopen.settled', `${run_id} (${link ?? 'no link'}) is alive`);
    }
  }

  /** D3: an orchestrator without a live agent must not remain live either. */
  checkAbandoned(): void {
    for (const tree_id of this.#chains.keys()) {
      const life = this.#ended.has(tree_id) ? undefined : this.lives.get(tree_id);
      if (life?.living.size !== 0) continue;
      this.#options.history.report('reopen.settled', `${tree_id} is ${life.state} and has no living agent`);
    }
  }

  #take(stored: StoredEntry): void {
    const entry = JSON.parse(stored.text) as Entry;
    const chain = this.#chained(stored, entry);
    if (chain.incoming !== null && !isRefusal(entry)) this.steps.opened(chain.incoming);
    const incoming = entry.type === 'input' && entry.body.kind === 'proposal' ? entry.body : null;
    this.#chains.set(stored.tree_id, { seq: stored.seq + 1, hash: stored.leaf_hash, incoming });
    this.#heed(entry);
    if (this.#options.folding) this.#fold(stored);
  }

  #chained({ log_index, tree_id, seq, type, text, leaf_hash }: StoredEntry, entry: Entry): Chain {
    const chain = this.#chains.get(tree_id) ?? { seq: 0, hash: NO_PREV, incoming: null };
    const whole =
      log_index === this.size - 1 &&
      seq === chain.seq &&
      entry.seq === seq &&
      entry.type === type &&
      entry.tree_id === tree_id &&
      entry.prev === chain.hash &&
      leafHash(text) === leaf_hash;
    if (!whole) this.#options.history.report('chain.whole', `entry ${seq} of ${tree_id} does not follow ${chain.seq}`);
    return chain;
  }

  #heed(entry: Entry): void {
    switch (entry.type) {
      case 'input':
        this.#input(entry.body);
        break;
      case 'run_created':
        this.lives.created(entry.body);
        break;
      case 'audit_event': {
        const { run_id } = entry.body;
        this.lives.event(entry.body);
        const life = this.lives.get(run_id);
        if (isRefusal(entry) || life === undefined || !isTerminal(life.state)) return;
        this.steps.ended(run_id);
        if (run_id === entry.tree_id) this.#ended.add(run_id);
        break;
      }
      case 'step_trace':
        this.steps.traced(entry.body);
        break;
    }
  }

  #input(input: RecordedInput): void {
    if (input.kind === 'result') this.#result(input);
    if (input.kind !== 'wake') return;
    const at = input.input_id.slice(input.input_id.indexOf('@') + 1);
    if (input.time < at) this.#options.history.report('timer.early', `${input.input_id} at ${input.time}`);
  }

  /** The ledger reports each effect truthfully and once. */
  #result({ run_id, status, result }: ResultInput): void {
    const { history } = this.#options;
    if (this.#answered.has(run_id)) history.report('effect.once', `${run_id} has a second result`);
    this.#answered.add(run_id);
    if (this.lives.get(run_id)?.created.run_kind !== 'db_write') return;
    const done = this.#done.get(run_id);
    if (status === 'done') {
      const returned = done?.status === 'done' ? sha256(JSON.stringify(done.result)) : null;
      if (returned !== result?.hash_sha256) history.report('effect.truth', `${run_id} is done, but nothing was done`);
    } else if (status === 'failed' && done !== undefined) {
      history.report('effect.truth', `${run_id} has failed, but was done`);
    }
  }

  #fold(stored: StoredEntry): void {
    const { tree_id, seq, type } = stored;
    const { disk, history } = this.#options;
    let fold = this.#folds.get(tree_id);
    if (fold === undefined) {
      fold = new Fold(tree_id);
      for (let earlier = 0; earlier < seq; earlier += 1) {
        const known = disk.entryOf({ tree_id, seq: earlier });
        if (known !== undefined) fold.apply(known, disk.artifactsOf(known));
      }
    }
    const taken = fold.apply(stored, type === 'input' ? disk.artifactsOf(stored) : []);
    if ('difference' in taken) {
      const { rule, expected, found } = taken.difference;
      const invariant = rule === 'seen.differs' ? 'proposal.once' : 'fold.same';
      history.report(invariant, `${tree_id} ${seq}: ${rule}: ${expected ?? '-'} / ${found ?? '-'}`);
    }
    this.#folds.delete(tree_id);
    this.#folds.set(tree_id, fold);
    this.#forgetFolds();
  }

  #forgetFolds(): void {
    if (this.#folds.size <= ENDED_FOLDS_MAX) return;
    for (const tree_id of this.#folds.keys()) {
      if (!this.#ended.has(tree_id)) continue;
      this.#folds.delete(tree_id);
      return;
    }
  }
}

const isRefusal = (entry: Entry): boolean =>
  entry.type === 'audit_event' && entry.body.outcome_reason === 'INVALID_STATE_TRANSITION';
