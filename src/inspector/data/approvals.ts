// What waits for people, as the service tells it, and their votes.

import type { HttpFeed } from './http-feed.js';

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

  async vote(run_id: string, digest: string, decision: 'approve' | 'reject'): Promise<readonly Vote[]> {
    const body = JSON.stringify({ run_id, digests: [digest], decision });
    const headers = { 'Content-Type': 'application/json' };
    const answer = await this.#feed.ask('/approvals', { method: 'POST', headers, body });
    return ((await answer.json()) as { votes: readonly Vote[] }).votes;
  }
}
