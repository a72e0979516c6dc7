// What waits for people, as the service tells it, and their votes.

import { unpackRows } from '../../contract/event-row.js';
import type { EventRow } from '../../contract/inspection.js';
import type { HttpFeed } from './http-feed.js';

/** What comes together is asked for once, and not more often than somebody reads. */
const TOGETHER_MS = 300;
const APART_MS = 5_000;
/** Where the ledger may not be followed: so often it is asked what waits. */
const AGAIN_MS = 15_000;

export interface OpenApproval {
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
}

export interface Vote {
  readonly digest: string;
  readonly counted: boolean;
  readonly rule_id: string;
}

export class Approvals {
  readonly #feed: HttpFeed;

  constructor(feed: HttpFeed) {
    this.#feed = feed;
  }

  async open(): Promise<readonly OpenApproval[]> {
    const answer = await this.#feed.ask('/approvals');
    return ((await answer.json()) as { approvals: readonly OpenApproval[] }).approvals;
  }

  /** Tells whenever something may have changed of what waits, until it is called off. */
  changes(tell: () => void): () => void {
    const until = new AbortController();
    const { soon, off } = apart(tell);
    let timer: ReturnType<typeof setInterval> | undefined;
    let next = 0;
    void this.#feed.follow(
      {
        page: (page) => {
          next = page.from + page.rows.length;
          if (unpackRows(page).some(isOfApproval)) soon();
          return Promise.resolve();
        },
        connection: (state) => {
          // Whatever was missed until now, or while it was lost.
          if (state === 'live') soon();
          // Who may approve may not always look.
          if (state === 'refused' && !until.signal.aborted) timer ??= setInterval(tell, AGAIN_MS);
        },
        from: () => next,
      },
      until.signal,
    );
    return () => {
      until.abort();
      off();
      clearInterval(timer);
    };
  }

  async vote(run_id: string, digest: string, decision: 'approve' | 'reject'): Promise<readonly Vote[]> {
    const body = JSON.stringify({ run_id, digests: [digest], decision });
    const headers = { 'Content-Type': 'application/json' };
    const answer = await this.#feed.ask('/approvals', { method: 'POST', headers, body });
    return ((await answer.json()) as { votes: readonly Vote[] }).votes;
  }
}

/** Whether an entry may change what waits: something was refused, answered, woken by its time, or is over. */
const isOfApproval = ({ label, state }: EventRow): boolean =>
  /^(?:vote|authz deny|wake|cancel|end)|approval/.test(label) || (state !== null && state !== 'running');

/** Tells what comes together at once, and what comes soon after it a while later. */
function apart(tell: () => void): { readonly soon: () => void; readonly off: () => void } {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isMore = false;
  const rested = (): void => {
    timer = undefined;
    if (isMore) soon();
  };
  const soon = (): void => {
    isMore = timer !== undefined;
    timer ??= setTimeout(() => {
      timer = setTimeout(rested, APART_MS);
      tell();
    }, TOGETHER_MS);
  };
  return { soon, off: () => clearTimeout(timer) };
}
