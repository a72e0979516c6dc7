// The state of the page: all its data, and the current view. Views read signals; methods here change them.

import { batch, computed, signal } from '@preact/signals';
import type { EventDetails, LedgerInfo, RowPage } from '../../../../core/contract/inspection/inspection.js';
import { errorText, toAccessProblem, type FeedConnection, type Feed, type AccessProblem } from '../data/feed.js';
import type { SessionView } from '../../contract/session-view.js';
import { isTextOfRow, leafHashOf, type InspectedEvent } from '../worker/ledger-proof.js';
import { FIRST_VIEW, type Tab, type PageView } from './address.js';
import { Courses } from './courses.js';
import { Lists, type ListItem } from './item-lists.js';
import { lowerBound } from './rows/number-list.js';
import { ALL_MOVES, type Moment } from './path.js';
import { ProofTracker } from './proof-tracker.js';
import { applyLivePage, fetchEarlierRows, loadNewest, ReceivedRows } from './received-rows.js';
import { Rows } from './rows/rows.js';
import { kindOf, Runs, type Run } from './rows/runs.js';

/** New rows are drawn at most ten times a second. */
const DRAW_MS = 100;
/** How long new rows wait for what is drawn with them, in milliseconds. Then a panel that is behind says so. */
const PREPARE_MS_MAX = 5_000;
/** Pause before earlier rows are requested again after a failure, in milliseconds. It doubles with each failure. */
const FILL_MS = 1_000;
const FILL_MS_MAX = 60_000;

/** Identifies the view of a session at an entry. */
export const sessionKey = (session_id: string, at: number): string => `session ${session_id} ${at}`;

export class Store {
  readonly feed: Feed;
  readonly info = signal<LedgerInfo | null>(null);
  readonly failure = signal<string | null>(null);
  /** Why the service refuses access; null for any other failure. */
  readonly refusal = signal<AccessProblem | null>(null);
  readonly connection = signal<FeedConnection>('connecting');
  /** Increases with every change of the rows. */
  readonly rev = signal(0);
  readonly view = signal<PageView>(FIRST_VIEW);
  /** Whether the next chosen run or step is the one to compare with. */
  readonly isChoosingComparison = signal(false);
  #rows = new Rows(0, 0);
  #runs = new Runs(this.#rows);
  #received = new ReceivedRows(this.#rows);
  readonly courses: Courses;
  readonly lists: Lists;
  readonly proof: ProofTracker;
  #session: { readonly key: string; readonly view: SessionView | null } | null = null;
  #drawTimer: ReturnType<typeof setTimeout> | null = null;
  #following: AbortController | null = null;
  #isFilling = false;
  #fillWait = FILL_MS;
  #fillTimer: ReturnType<typeof setTimeout> | undefined;

  /** Whatever reads the rows is drawn again when they change: they are no signals themselves. */
  get rows(): Rows {
    this.rev.valueOf();
    return this.#rows;
  }
  get runs(): Runs {
    this.rev.valueOf();
    return this.#runs;
  }

  /** The position at which everything is displayed. */
  readonly cursor = computed<Moment>(() => {
    const { at } = this.view.value;
    return at ?? { at: this.rows.end - 1, moves: ALL_MOVES };
  });
  /** The number of entries that every panel shows. */
  readonly revision = computed(() => this.rows.end);
  readonly isLive = computed(() => this.view.value.at === null);
  readonly run = computed<Run | null>(() => {
    const { run } = this.view.value;
    return run === null ? null : this.runs.byId(run);
  });
  /** What is compared. An address can name a run that is not comparable: then nothing is. */
  readonly comparison = computed<PageView['cmp']>(() => {
    const { cmp } = this.view.value;
    return cmp !== null && this.canCompare(cmp.run) ? cmp : null;
  });
  readonly tab = computed(() => this.view.value.tab);

  constructor(feed: Feed, proof: ProofTracker) {
    this.feed = feed;
    this.proof = proof;
    this.courses = new Courses(this);
    this.lists = new Lists(this);
  }

  /** Loads the existing rows and follows new ones. */
  async open(): Promise<void> {
    batch(() => {
      this.failure.value = null;
      this.refusal.value = null;
      this.connection.value = 'connecting';
    });
    try {
      const info = await this.feed.info();
      this.#rows = new Rows(info.begin, Math.max(info.begin, info.size));
      this.#runs = new Runs(this.#rows);
      this.#received = new ReceivedRows(this.#rows);
      await loadNewest(this.feed, this.rows, info.size);
      batch(() => {
        this.info.value = info;
        this.#draw();
        if (this.view.value.run === null) this.#chooseFirst();
      });
    } catch (error) {
      batch(() => {
        this.refusal.value = toAccessProblem(error);
        this.connection.value = this.refusal.value === null ? 'none' : 'refused';
        this.failure.value = errorText(error);
      });
      return;
    }
    this.follow();
    await this.#fetchEarlier();
  }

  /** Starts or continues to follow the stream. After a change of ledger, only reloading the page continues. */
  follow(): void {
    if (this.#following !== null || this.connection.value === 'other') return;
    const until = new AbortController();
    this.#following = until;
    const page = async (came: RowPage): Promise<void> => {
      await applyLivePage(this.feed, this.#received, came);
      this.#drawSoon();
    };
    const connection = (state: FeedConnection): void => {
      this.connection.value = state;
      if (state !== 'live') return;
      // Request what was unavailable while the connection was lost.
      this.#retryFill();
      this.proof.retry();
    };
    const ledger = this.info.value?.ledger_id ?? null;
    void this.feed.follow(
      { onPage: page, onConnection: connection, from: () => this.#received.end, ledger },
      until.signal,
    );
  }

  /** An entry in full. @throws Error if it differs from the listed one */
  async event(at: number): Promise<EventDetails | null> {
    const found = await this.inspectEvent(at);
    if (found?.changed == null) return found?.details ?? null;
    throw new Error('the service returned a different entry than the list has.');
  }

  /** An entry in full, also one with another text than the recorded one: then with the hashes of both. */
  async inspectEvent(at: number): Promise<InspectedEvent | null> {
    const [details, row] = [await this.feed.event(at), this.rows.row(at)];
    if (details === null) return null;
    if (row === null || this.proof.phase.value === 'impossible') return { details, changed: null };
    const leaf = await this.proof.leafOf(at);
    if (await isTextOfRow(details, { row, leaf })) return { details, changed: null };
    const computed = await leafHashOf(details.text);
    return { details, changed: { at, computed, recorded: leaf ?? details.leaf_hash } };
  }

  pause(): void {
    this.#following?.abort();
    this.#following = null;
    if (this.connection.value === 'live') this.connection.value = 'paused';
  }

  change(change: Partial<PageView>): void {
    const { run, cmp } = this.view.value;
    const view = { ...this.view.value, ...change };
    // The course of a run that was displayed earlier may be behind.
    for (const id of [view.run === run ? null : view.run, view.cmp === cmp ? null : (view.cmp?.run ?? null)]) {
      const opened = id === null ? null : this.runs.byId(id);
      if (opened !== null) this.courses.open(opened);
    }
    this.view.value = view;
  }

  /** Selects a run of the tree, or the run to compare with while that is being chosen. */
  select(run: string): void {
    if (this.isChoosingComparison.value) {
      this.compare(run, 0);
      return;
    }
    const own = this.runs.byId(run);
    const steps = own !== null && kindOf(this.rows, own) === 'agent';
    const kind = own === null ? '' : kindOf(this.rows, own);
    const { tab } = this.view.value;
    const possible =
      tab === 'time' || tab === 'run' || (steps && tab !== 'session') || (kind === 'session' && tab === 'session');
    this.change({ run, step: 0, tab: possible ? (tab === 'step' || tab === 'story' ? 'run' : tab) : 'run', cmp: null });
  }

  selectStep(step: number): void {
    const { run, tab } = this.view.value;
    if (this.isChoosingComparison.value && run !== null) {
      this.compare(run, step);
      return;
    }
    this.change({ step, tab: tab === 'story' ? 'story' : 'step' });
  }

  /** Compares only runs of one kind, and steps of them. Another run is not accepted. */
  compare(run: string, step: number): void {
    const { run: own, step: ownStep, tab } = this.view.value;
    if (!this.canCompare(run)) return;
    this.isChoosingComparison.value = false;
    if (own === run && step === (tab === 'run' ? 0 : ownStep)) return;
    this.change({ cmp: { run, step }, tab: step > 0 ? 'step' : 'run' });
  }

  /** Whether the selected run can be compared with this one: runs of different kinds have different machines. */
  canCompare(run: string): boolean {
    const [own, other] = [this.run.value, this.runs.byId(run)];
    return own !== null && other !== null && kindOf(this.rows, own) === kindOf(this.rows, other);
  }

  /** Whether there is another step or another run of its kind to compare the selected run with. */
  get hasComparison(): boolean {
    const own = this.run.value;
    if (own === null) return false;
    return own.traces.length > 1 || this.runs.some((run) => run !== own && this.canCompare(run.id));
  }

  /** Begins or ends the choice of a run or step to compare with. */
  toggleComparison(): void {
    const { isChoosingComparison } = this;
    isChoosingComparison.value = !isChoosingComparison.value && this.hasComparison;
  }

  /** Whether readings are recorded: if so, reading at the head would move the head. */
  get isRecording(): boolean {
    return this.isLive.value && this.info.value?.live === true;
  }

  /** Fixes the position while new rows arrive. */
  hold(): void {
    if (this.isRecording) this.goTo({ at: this.cursor.value.at, moves: ALL_MOVES });
  }

  goTo(moment: Moment | null): void {
    this.change({ at: moment });
  }

  /** Moves to an item of the list, and to its step. */
  showItem({ at, nth, move, course, run, side }: ListItem): void {
    const step = move < 0 ? this.rows.step(at) : (course?.moves[move]?.[1] ?? 0);
    const own = this.run.value;
    const change = { at: { at, moves: nth }, ...(step > 0 && run === own && side === null ? { step } : {}) };
    if (run !== null && run !== own && side === null) this.change({ ...change, run: run.id, step: 0, tab: 'run' });
    else this.change(change);
  }

  /** The displayed step: the chosen one, otherwise the one at the cursor. */
  stepShown(): number {
    const { step } = this.view.value;
    return step > 0 ? step : this.stepAt(this.cursor.value.at);
  }

  /** The last step that had started at an entry; 0 before the first. */
  stepAt(at: number): number {
    const steps = this.courses.course(this.run.value)?.steps ?? [];
    return lowerBound(steps.length, (place) => (steps[place] ?? 0) <= at);
  }

  /** The agent's view stays at its step: each reading is recorded, so moving the cursor must not cause one. */
  openTab(tab: Tab): void {
    this.change(tab === 'story' ? { tab, step: this.stepShown() } : { tab });
  }

  /** Selects the run at the requested position, otherwise the newest agent run. */
  #chooseFirst(): void {
    const { roots } = this.runs;
    const { at } = this.view.value;
    const requested = at === null ? null : this.runs.get(this.rows.run(at.at));
    if (requested !== null) {
      this.change({ run: requested.id });
      return;
    }
    for (let place = roots.length - 1; place >= 0; place -= 1) {
      const root = this.runs.get(roots[place] ?? -1);
      const agent = root === null ? null : this.#agentBelow(root);
      if (agent !== null) {
        this.change({ run: agent.id });
        return;
      }
    }
    const last = this.runs.get(roots.at(-1) ?? -1);
    if (last !== null) this.change({ run: last.id });
  }

  #agentBelow(run: Run): Run | null {
    for (const key of [...run.children].reverse()) {
      const child = this.runs.get(key);
      if (child === null) continue;
      if (kindOf(this.rows, child) === 'agent') return child;
      const below = this.#agentBelow(child);
      if (below !== null) return below;
    }
    return null;
  }

  /** Loads earlier rows; then the proof starts. */
  async #fetchEarlier(): Promise<void> {
    this.#isFilling = true;
    const rows = (from: number, to: number): Promise<RowPage> => this.#fetchRows(from, to);
    await fetchEarlierRows({ rows }, this.rows, () => this.#onFilled()).catch(() => undefined);
    this.#isFilling = false;
    if (this.#isWhole) {
      if (this.info.value !== null) this.proof.begin(this, this.info.value);
      return;
    }
    // The list reports missing rows at its beginning.
    clearTimeout(this.#fillTimer);
    this.#fillTimer = setTimeout(() => this.#retryFill(), this.#fillWait);
    this.#fillWait = Math.min(2 * this.#fillWait, FILL_MS_MAX);
  }

  get #isWhole(): boolean {
    return this.rows.first <= this.rows.begin;
  }

  #onFilled(): void {
    this.#fillWait = FILL_MS;
    this.#draw();
  }

  #retryFill(): void {
    const { value } = this.connection;
    if (!this.#isFilling && !this.#isWhole && value !== 'refused' && value !== 'other') void this.#fetchEarlier();
  }

  /** An address that is not being followed may serve another ledger by now. */
  async #fetchRows(from: number, to: number): Promise<RowPage> {
    const page = await this.feed.rows(from, to);
    if (this.connection.value === 'live') return page;
    const { ledger_id } = await this.feed.info();
    if (ledger_id === this.info.value?.ledger_id) return page;
    this.pause();
    this.connection.value = 'other';
    throw new Error('these rows belong to another ledger');
  }

  #drawSoon(): void {
    this.#drawTimer ??= setTimeout(() => {
      void this.#drawReceived().then(() => {
        this.#drawTimer = null;
        if (this.#received.end > this.rows.end) this.#drawSoon();
      });
    }, DRAW_MS);
  }

  /** Draws the received rows once everything is here that the panels show of that revision. */
  async #drawReceived(): Promise<void> {
    const { end } = this.#received;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, PREPARE_MS_MAX)));
    // The reader may have chosen another run meanwhile: then that one is prepared.
    for (let view: PageView | null = null; view !== this.view.value;) {
      view = this.view.value;
      await Promise.race([this.#prepare(), late]);
    }
    clearTimeout(timer);
    batch(() => {
      this.#received.show(end);
      this.#draw();
    });
  }

  /** Fetches what the current view shows of trees that have grown. */
  async #prepare(): Promise<void> {
    const { run: own, cmp, tab } = this.view.value;
    const runs = [own, cmp?.run ?? null].map((id) => (id === null ? null : this.runs.byId(id)));
    const preparing = runs.flatMap((run) => {
      const last = run === null ? -1 : this.#received.lastOf(this.rows.ids.at(run.tree));
      if (run === null || last < 0) return [];
      const session = tab === 'session' && this.isLive.value ? [this.#prepareSession(run, last)] : [];
      return [this.courses.prepare(run, last), ...session];
    });
    await Promise.all(preparing);
  }

  /** Fetches the session of a run's tree at an entry. After a failure, the panel requests it itself. */
  async #prepareSession(run: Run, at: number): Promise<void> {
    const session_id = this.rows.ids.at(run.tree);
    try {
      this.#session = { key: sessionKey(session_id, at), view: await this.feed.session(session_id, at) };
    } catch {
      this.#session = null;
    }
  }

  /** A session that was fetched before the entry was shown, so that its panel is drawn with the others. */
  preparedSession(key: string): SessionView | null | undefined {
    return this.#session?.key === key ? this.#session.view : undefined;
  }

  #draw(): void {
    batch(() => {
      this.runs.update();
      this.rev.value += 1;
      if (this.view.value.run === null && this.info.value !== null) this.#chooseFirst();
    });
    this.proof.onGrowth();
  }
}
