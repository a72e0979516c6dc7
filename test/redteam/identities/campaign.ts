// The campaign against identities: whether one person can count as two, by any spelling of a name that a reader, or
// C87, considers the same.

import type { ApprovalBallot } from '../../../src/core/contract/run/approval.js';
import type { OverlayFact } from '../../../src/core/contract/policy/overlay.js';
import { compareNames } from '../../../src/core/contract/person.js';
import { emptyBook, type ApprovalPolicy } from '../../../src/core/policy/policy-features.js';
import { requestApproval, approvalStatus, countBallot } from '../../../src/features/approvals/approval-requests.js';
import { overlayVerdict } from '../../../src/core/policy/authorize-run.js';
import { Random } from '../../simulation/random.js';
import type { RedteamResult } from '../campaign-runner.js';
import { drawSpelling, KNOWN_NAMES, SPELLING_KINDS, tableSpellings, type Spelling } from './spellings.js';
import { REAL, type Subject } from './subjects.js';

export interface IdentityCampaign {
  readonly seed: number;
  /** Number of spellings to draw. */
  readonly cases: number;
  /** One mapping of the tables in this number; 0: none. */
  readonly every: number;
  readonly subject?: Subject;
  /** Whether to end with the first failure. */
  readonly isSearch?: boolean;
}

const RULE = { for: 'export', approver_roles: ['PARTNER'], quorum: 2, expires_minutes: 60 };
const DIGEST = 'd'.repeat(64);
const AT = '2026-01-05T09:00:00.000Z';
const REQUESTER = 'governor';
const STRANGER = 'berta';
const FAILURES_SHOWN = 50;

export function attackIdentities(options: IdentityCampaign): RedteamResult {
  const { seed, cases, every, subject = REAL, isSearch = false } = options;
  const random = new Random(`identities ${seed}`);
  const counts = new Map<string, number>();
  const failures: string[] = [...strangers(subject)];
  const judge = (spelling: Spelling, level: string): void => {
    for (const name of [level, 'suspended under another spelling']) counts.set(name, (counts.get(name) ?? 0) + 1);
    for (const kind of spelling.kinds) counts.set(kind, (counts.get(kind) ?? 0) + 1);
    const found = wrongs(spelling, subject);
    if (found.length > 0) failures.push(`${quoted(spelling.known)} as ${quoted(spelling.text)}: ${found.join(', ')}`);
  };
  for (let index = 0; index < cases; index += 1) {
    if (isSearch && failures.length > 0) break;
    const spelling = drawSpelling(random);
    if (spelling.text !== spelling.known) judge(spelling, 'drawn');
  }
  if (every > 0) for (const spelling of tableSpellings(every)) judge(spelling, 'of the tables');
  const figures = Object.fromEntries(
    ['drawn', 'of the tables', 'suspended under another spelling', ...SPELLING_KINDS].map((name) => [
      name,
      counts.get(name) ?? 0,
    ]),
  );
  const shown = failures.slice(0, FAILURES_SHOWN);
  const more = failures.length - shown.length;
  return { figures, failures: more > 0 ? [...shown, `and ${more} more`] : shown };
}

/** What one person gains by a second spelling. */
function wrongs({ known, text }: Spelling, subject: Subject): readonly string[] {
  const [one, other] = [subject.person(known), subject.person(text)];
  // A refused name belongs to no person: it neither votes nor gets a token.
  const isRefused = one === null || other === null;
  const found: string[] = [];
  if (!isRefused) {
    if (compareNames(one, other) === 'other' || compareNames(other, one) === 'other') found.push('is another person');
    for (const [first, second] of [[known, text] as const, [text, known] as const]) {
      if (!isSuspended(subject, first, second)) found.push('has a say while suspended');
      if (voted(subject, REQUESTER, [first, second]) === 'granted') found.push('is a quorum of two');
      if (voted(subject, first, [second, STRANGER]) === 'granted') found.push('approves its own request');
    }
  }
  if (isKnown(known) && subject.mints(text)) found.push('gets a second token');
  return found;
}

const isKnown = (name: string): boolean => KNOWN_NAMES.some((known) => known === name);

/** Different people, who must stay different. */
function* strangers(subject: Subject): Generator<string> {
  for (const [index, name] of KNOWN_NAMES.entries()) {
    const other = KNOWN_NAMES[(index + 1) % KNOWN_NAMES.length] ?? '';
    if (voted(subject, REQUESTER, [name, other]) !== 'granted') yield `${name} and ${other} are no quorum of two`;
    if (!subject.mints(name)) yield `${name} gets no token`;
    if (isSuspended(subject, other, name)) yield `${name} is suspended with ${other}`;
  }
  if (!subject.mints(STRANGER)) yield `${STRANGER} gets no token`;
}

const NOBODYS = {
  role_id: null,
  lane_id: null,
  action: null,
  tool: null,
  table: null,
  case_id: null,
  run_id: null,
} as const;

/** Whether a rule of the overlay for one name denies the other. */
function isSuspended({ person, suspends }: Subject, name: string, other: string): boolean {
  const ruled = person(name);
  const rule = { rule_id: 'deny-1', reason: 'A stolen key.', actor_id: name };
  const overlay: OverlayFact = { epoch: 1, rules: [ruled === null ? rule : { ...rule, person: ruled }] };
  return overlayVerdict(overlay, { ...NOBODYS, actor_id: other, person: suspends(person(other)) }) !== null;
}

function voted({ votes: person }: Subject, by: string, names: readonly string[]): string {
  const policy: ApprovalPolicy = {
    approvals: [RULE],
    roles: new Map([
      ['PARTNER', { role_id: 'PARTNER', description: 'A person.', class: 'human', privileges: { lanes: [] } }],
    ]),
  };
  const requester = person(by) ?? undefined;
  const request = { digest: DIGEST, name: 'export', requested_by: by, requester, at: AT };
  let book = requestApproval(emptyBook('run_x.1'), request, RULE);
  for (const name of names) {
    const of = person(name);
    const actor = { actor_type: 'human' as const, actor_id: name };
    const approver = { actor, role_id: 'PARTNER', ...(of === null ? {} : { person: of }) };
    const ballot: ApprovalBallot = { digests: [DIGEST], decision: 'approve', approver, at: AT, for_run: 'run_x.1' };
    book = countBallot(book, ballot, policy).book;
  }
  return approvalStatus(book, DIGEST, AT, RULE);
}

/** Escapes every character that is not ASCII, so that look-alikes can be distinguished. */
const quoted = (text: string): string =>
  JSON.stringify(text).replaceAll(/[^\x20-\x7e]/gu, (point) => `\\u{${(point.codePointAt(0) ?? 0).toString(16)}}`);
