// Renders how often each element of a policy decided.

import type { ElementCoverage, PolicyCoverage } from '../../../core/contract/evidence/coverage-proof.js';
import { countText, escapeText, table, type Paint, type TextCell } from './terminal.js';

const HASH_CHARS = 12;

interface CoverageCounts {
  readonly not_recomputed: number;
  readonly needs?: string;
  readonly policies: readonly PolicyCoverage[];
}

interface CoverageRange extends CoverageCounts {
  /** Null: from the first entry. */
  readonly from: { readonly size: number } | null;
  readonly to: { readonly size: number };
}

/** The report of `policy coverage`, one table for each version of the policy. */
export function coverageText({ from, to, policies, ...partly }: CoverageRange, paint: Paint): string {
  const begin = from?.size ?? 0;
  const decisions = policies.reduce((sum, policy) => sum + policy.decisions, 0);
  const head =
    `${countText(decisions, 'decision')} in ${to.size - begin} entries, from ${begin} to ${to.size}, ` +
    `under ${policies.length === 1 ? '1 version' : `${policies.length} versions`} of the policy\n`;
  const note = incompleteNote(partly);
  return `${policies.map((policy) => policyText(policy, paint)).join('')}${head}${note}`;
}

/** Says how many trees count only in part, and why; empty if none does. */
export function incompleteNote({ not_recomputed, needs }: Pick<CoverageCounts, 'not_recomputed' | 'needs'>): string {
  if (not_recomputed === 0) return '';
  const why = needs ?? 'content that decisions depend on is not available';
  return `note: ${countText(not_recomputed, 'run tree')} only in part: ${escapeText(why)}\n`;
}

function policyText({ files, decisions, trees, elements, other }: PolicyCoverage, paint: Paint): string {
  const names = Object.entries(files).map(([name, hash]) => `${name} ${hash.slice(0, HASH_CHARS)}`);
  const never = elements.filter(({ allowed, denied }) => allowed + denied === 0).length;
  const others = other.map(({ rule_id, allowed, denied }) => `${allowed + denied} by ${rule_id ?? 'no rule'}`);
  return [
    `policy ${names.join(', ')}: ${countText(decisions, 'decision')} of ${countText(trees, 'run tree')}\n`,
    table([TITLES, ...elements.map(rowOf)], paint),
    `${never} of ${countText(elements.length, 'element')} never decided\n`,
    others.length === 0 ? '' : `decided by no element: ${escapeText(others.join(', '))}\n`,
  ].join('');
}

const TITLES: readonly TextCell[] = ['kind', 'lane', 'element', 'allowed', 'denied', ''].map((text) => ({
  text,
  colour: 'bold' as const,
}));

function rowOf({ kind, lane_id, name, allowed, denied }: ElementCoverage): TextCell[] {
  return [
    { text: kind },
    { text: escapeText(lane_id ?? '-') },
    { text: escapeText(name) },
    { text: String(allowed) },
    { text: String(denied) },
    { text: allowed + denied === 0 ? 'never' : '', colour: 'yellow' },
  ];
}
