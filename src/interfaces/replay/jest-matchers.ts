import { nameInLedger, nameInTree } from '../../core/contract/entry-name.js';
import type { RunRecord } from '../../core/contract/run/run-record.js';
import type { AuditEvent } from '../../core/contract/run/audit-event.js';
import type { Entry } from '../../core/contract/run/entry.js';
import { findLifecycleFaults } from '../../kernel/replay/lifecycle-faults.js';
import { replay, type ReplaySource } from '../../kernel/replay/replay.js';

/** The result of a matcher, in the form that jest requires. */
interface MatcherResult {
  readonly pass: boolean;
  readonly message: () => string;
}

/** An object whose ledger can be read: a Turnpike, its `ledger`, or a store. */
export type ReplayTarget = ReplayableSource | { readonly ledger: ReplayableSource };

/** A ledger's reader withholds content from its callers. `folded` has all content, for folding. */
type ReplayableSource = ReplaySource | { readonly folded: ReplaySource };

/** The entries of one or more run trees in order. */
export type EntryList = readonly Entry[];

/**
 * For `expect.extend(turnpikeMatchers)`.
 * `await expect(turnpike).toReplayIdentically()`: every state, verdict and response replays as recorded.
 * `expect(entries).toSatisfyLifecycle()`: every run follows the state table of S4 §3 and has the events of S4 §6.
 * `expect(entries).toBeDeniedBy('extension.not_allowed')`: exactly this rule has denied something.
 */
export const turnpikeMatchers = {
  /** Passes if every state, verdict and response is reproduced. */
  async toReplayIdentically(received: ReplayTarget): Promise<MatcherResult> {
    const source = 'ledger' in received ? received.ledger : received;
    const report = await replay('folded' in source ? source.folded : source);
    const { difference } = report;
    return {
      pass: report.ok,
      message: () =>
        difference === null
          ? `expected the ledger to differ, but all ${report.entries} entries of ${report.trees} trees were replayed`
          : `entry ${nameInTree(difference.tree_id, difference.seq)} (${difference.log_index === null ? 'not in the log' : nameInLedger(difference.log_index)}): ` +
            `${difference.rule}\nexpected: ${difference.expected ?? 'nothing'}\nfound:    ${difference.found ?? 'nothing'}`,
    };
  },

  /** Passes if every run follows the state table and has its audit events. */
  toSatisfyLifecycle(received: EntryList): MatcherResult {
    const faults = findLifecycleFaults(received);
    return {
      pass: faults.length === 0,
      message: () =>
        faults.length === 0 ? 'expected a run that breaks the lifecycle, but there is none' : faults.join('\n'),
    };
  },

  /** Passes if something was denied, and only by this rule. */
  toBeDeniedBy(received: EntryList | RunRecord, rule_id: string): MatcherResult {
    const rules = findDenyingRules(received);
    return {
      pass: rules.length > 0 && rules.every((rule) => rule === rule_id),
      message: () => `expected denials by ${rule_id}; denied by: ${rules.length === 0 ? 'nothing' : rules.join(', ')}`,
    };
  },
};

/** The types of the matchers, for the declaration of `expect` in a test suite. */
export interface TurnpikeMatchers<R> {
  /** Expects that every state, verdict and response is reproduced. */
  toReplayIdentically(): Promise<R>;
  /** Expects that every run follows the state table and has its audit events. */
  toSatisfyLifecycle(): R;
  /** Expects a denial by this rule, and none by another. */
  toBeDeniedBy(rule_id: string): R;
}

function findDenyingRules(received: EntryList | RunRecord): readonly string[] {
  if ('run_id' in received) {
    return received.status === 'denied' ? [(received.outcome ?? '').replace(/^denied:/, '')] : [];
  }
  const events = received.flatMap((entry) => (entry.type === 'audit_event' ? [entry.body] : []));
  return [...new Set(events.filter(isDenial).map((event) => event.authz?.rule_id ?? ''))];
}

const isDenial = (event: AuditEvent): boolean => event.action_type === 'authz_decision' && event.outcome === 'deny';
