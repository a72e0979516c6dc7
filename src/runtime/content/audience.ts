// Who may read content of the ledger (decision 0035). Only the deciding code can create an audience. Like a capability,
// a copy or an object of the same shape is rejected. The grant is stored outside the object, so it cannot be changed.

import { InvariantError } from '../../core/errors.js';
import type { EntryPlace } from '../../engine/ports/ledger/ledger-store.js';

declare const audienceBrand: unique symbol;

/** Opaque: `ContentReader` reads its grant with `grantOf`. */
export interface Audience {
  readonly [audienceBrand]: true;
}

/** What an audience may read of withheld content. Every audience may read all other content. */
export type ContentGrant =
  /**
   * Hashes only. Readers with the right `observe`, bundles, pages, reports, logs: every reader that is not listed
   * below.
   */
  | { readonly kind: 'observers' }
  /** One content: the request that the person may approve. */
  | { readonly kind: 'approver'; readonly place: EntryPlace; readonly sha256: string }
  /** Everything of one case: an export run that its lanes permit, and that people have approved. */
  | { readonly kind: 'export'; readonly case_id: string };

const contentGrants = new WeakMap<Audience, ContentGrant>();

function createAudience(grant: ContentGrant): Audience {
  const issued = Object.freeze({}) as Audience;
  contentGrants.set(issued, Object.freeze(grant));
  return issued;
}

/** Everyone. It needs no decision, so all code that shows something can use it. */
export const OBSERVERS: Audience = createAudience({ kind: 'observers' });

/** Only for `src/runtime/ledger/pending-approvals.ts`, which decides who may vote on a request. */
export const approverAudience = ({ tree_id, seq }: EntryPlace, sha256: string): Audience =>
  createAudience({ kind: 'approver', place: { tree_id, seq }, sha256 });

/** Only for `src/features/exports/export-effects.ts`, after it has compared the lanes with the approved ones. */
export const exportAudience = (case_id: string): Audience => createAudience({ kind: 'export', case_id });

/** @throws InvariantError for an object that was not created by a function above */
export function grantOf(candidate: Audience): ContentGrant {
  const grant = contentGrants.get(candidate);
  if (grant === undefined) throw new InvariantError('content was requested for an audience that no decision has made');
  return grant;
}
