// What waits for people, as the service tells it, and their votes.

import { unpackRows } from '../../contract/event-row.js';
import type { EventRow } from '../../contract/inspection.js';
import { FeedError } from './feed.js';
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

/** As it is listed: what is asked, by its hash alone. */
type Listed = Omit<OpenApproval, 'request'> & { readonly args_sha256: string | null };

export class Approvals {
  readonly #feed: HttpFeed;
  /** What was read already: the ledger says who was shown a request, and the list is asked for again and again. */
  #read = new Map<string, OpenApproval['request']>();

  constructor(feed: HttpFeed) {
    this.#feed = feed;
  }

  async open(): Promise<readonly OpenApproval[]> {
    const answer = await this.#feed.ask('/approvals');
    const { approvals } = (await answer.json()) as { approvals: readonly Listed[] };
    const open = await Promise.all(approvals.map(async (one) => ({ ...one, request: await this.#requestOf(one) })));
    this.#read = new Map(open.map((one) => [keyOf(one), one.request]));
    return open;
  }

  async #requestOf(asked: Listed): Promise<OpenApproval['request']> {
    if (asked.args_sha256 === null) return null;
    const known = this.#read.get(keyOf(asked));
    if (known !== undefined && known !== null) return known;
    try {
      const answer = await this.#feed.ask(`/approvals/${encodeURIComponent(asked.run_id)}/${asked.digest}`);
      return (await answer.json()) as OpenApproval['request'];
    } catch (error) {
      // It was answered, or its time was over, since it was listed.
      if (error instanceof FeedError && error.status === 404) return null;
      throw error;
    }
  }

  /** Tells whenever something may have changed of what waits, until it is called off. */
  changes(tell: () => void): () => void {
    const until = new AbortController();
    const { soon, off } = apart(tell);
    let timer: ReturnType<typeof setInterval> | undefined;
    void this.#feed.follow(
      {
        page: (page) => {
          if (unpackRows(page).some(isOfApproval)) soon();
          return Promise.resolve();
        },
        connection: (state) => {
          // Whatever was missed until now, or while it was lost.
          if (state === 'live') soon();
          // Who may approve may not always look.
          if (state === 'refused' && !until.signal.aborted) timer ??= setInterval(tell, AGAIN_MS);
        },
        // What waits is asked for as a whole, whichever ledger it is of: nothing is told of what was before.
        from: () => 0,
        ledger: null,
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
const keyOf = ({ run_id, digest }: Pick<OpenApproval, 'run_id' | 'digest'>): string => `${run_id}/${digest}`;
