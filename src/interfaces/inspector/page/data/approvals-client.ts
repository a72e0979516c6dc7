// Reads the pending approvals from the service, and sends votes.

import { unpackRows } from '../../contract/event-row.js';
import type { EventRow } from '../../../../core/contract/inspection/inspection.js';
import type { RunState } from '../../../../core/contract/run/run-context.js';
import { FeedError } from './feed.js';
import type { HttpFeed } from './http-feed.js';

/** Changes within this time, in milliseconds, cause one request. It is also the shortest interval between requests. */
const COALESCE_MS = 300;
const CHANGE_INTERVAL_MS = 5_000;
/** Interval of requests if the token may not follow the ledger, in milliseconds. */
const POLL_MS = 15_000;

export interface ApprovalItem {
  readonly run_id: string;
  readonly case_id: string | null;
  readonly digest: string;
  readonly name: string;
  readonly request: { readonly action: string; readonly args: unknown } | null;
  readonly requested_by: string;
  readonly requested_at: string;
  readonly expires_at: string;
  readonly votes: readonly { readonly actor_id: string; readonly role_id: string; readonly at: string }[];
  readonly quorum: number;
  readonly approver_roles: readonly string[];
  readonly conditions?: readonly { readonly id: string; readonly message: string | null }[];
}

export interface CountedVote {
  readonly digest: string;
  readonly counted: boolean;
  readonly rule_id: string;
}

/** An approval as it is listed: the request only by its hash. */
type ListedApproval = Omit<ApprovalItem, 'request'> & { readonly args_sha256: string | null };

export class ApprovalsClient {
  readonly #feed: HttpFeed;
  /** Requests that were read already. The ledger records each reading, and the list is requested repeatedly. */
  #read = new Map<string, ApprovalItem['request']>();

  constructor(feed: HttpFeed) {
    this.#feed = feed;
  }

  async list(): Promise<readonly ApprovalItem[]> {
    const answer = await this.#feed.request('/approvals');
    const { approvals } = (await answer.json()) as { approvals: readonly ListedApproval[] };
    const open = await Promise.all(approvals.map(async (one) => ({ ...one, request: await this.#requestOf(one) })));
    this.#read = new Map(open.map((one) => [keyOf(one), one.request]));
    return open;
  }

  async #requestOf(listed: ListedApproval): Promise<ApprovalItem['request']> {
    if (listed.args_sha256 === null) return null;
    const known = this.#read.get(keyOf(listed));
    if (known !== undefined && known !== null) return known;
    try {
      const answer = await this.#feed.request(`/approvals/${encodeURIComponent(listed.run_id)}/${listed.digest}`);
      return (await answer.json()) as ApprovalItem['request'];
    } catch (error) {
      // It was decided, or it expired, since it was listed.
      if (error instanceof FeedError && error.status === 404) return null;
      throw error;
    }
  }

  /**
   * Calls back after every change that may affect the pending approvals, until the subscription is cancelled.
   * @param onState receives each state that a run enters, with the event that says so
   */
  onChange(notify: () => void, onState: (run_id: string, state: RunState, event: string) => void): () => void {
    const until = new AbortController();
    const { soon: schedule, off: cancel } = throttle(notify);
    let timer: ReturnType<typeof setInterval> | undefined;
    void this.#feed.follow(
      {
        onPage: (page) => {
          const rows = unpackRows(page);
          for (const { run_id, state, label } of rows) if (state !== null) onState(run_id, state, label);
          if (rows.some(canChangeApprovals)) schedule();
          return Promise.resolve();
        },
        onConnection: (state) => {
          // Covers everything that was missed until now, or while the connection was lost.
          if (state === 'live') schedule();
          // A token with the right to approve may lack the right to observe.
          if (state === 'refused' && !until.signal.aborted) timer ??= setInterval(notify, POLL_MS);
        },
        // The list is requested as a whole from whichever ledger is there, so nothing of an earlier ledger remains.
        from: () => 0,
        ledger: null,
      },
      until.signal,
    );
    return () => {
      until.abort();
      cancel();
      clearInterval(timer);
    };
  }

  async vote(run_id: string, digest: string, decision: 'approve' | 'reject'): Promise<readonly CountedVote[]> {
    const body = JSON.stringify({ run_id, digests: [digest], decision });
    const headers = { 'Content-Type': 'application/json' };
    const answer = await this.#feed.request('/approvals', { method: 'POST', headers, body });
    return ((await answer.json()) as { votes: readonly CountedVote[] }).votes;
  }
}

/** Whether an entry may change the list of approvals: a denial, a vote, a timer, or the end of a run. */
const canChangeApprovals = ({ label, state }: EventRow): boolean =>
  /^(?:vote|authz deny|wake|cancel|end)|approval/.test(label) || (state !== null && state !== 'running');

/** Combines calls within a short time into one, and delays the next one. */
function throttle(notify: () => void): { readonly soon: () => void; readonly off: () => void } {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isPending = false;
  const isRested = (): void => {
    timer = undefined;
    if (isPending) schedule();
  };
  const schedule = (): void => {
    isPending = timer !== undefined;
    timer ??= setTimeout(() => {
      timer = setTimeout(isRested, CHANGE_INTERVAL_MS);
      notify();
    }, COALESCE_MS);
  };
  return { soon: schedule, off: () => clearTimeout(timer) };
}
const keyOf = ({ run_id, digest }: Pick<ApprovalItem, 'run_id' | 'digest'>): string => `${run_id}/${digest}`;
