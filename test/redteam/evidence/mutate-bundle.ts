// Mutations of evidence bundles that know their structure, and what is signed again after each.

import { canonicalJson } from '../../../src/core/contract/json.js';
import type { NoteSigner } from '../../../src/core/ledger/proof/signed-note.js';
import { linesIn, rechainedLines, signedBundle, withheldLine, type Line } from '../../fixtures/forged-evidence.js';
import type { Draw } from './draw.js';

/** What the attacker signs again: nothing, the statement under the old checkpoint, or everything, with valid chains. */
export const SIGNINGS = ['nothing', 'statement', 'all', 'chained'] as const;
export type Signing = (typeof SIGNINGS)[number];

type Change = (lines: Line[], draw: Draw) => Line[];

const at = (lines: readonly Line[], draw: Draw): number => draw.below(lines.length);
const edited = (lines: readonly Line[], index: number, change: (line: Line) => Line): Line[] =>
  lines.map((line, n) => (n === index ? change(line) : line));

/** Replaces the n-th occurrence of one of the pairs in an entry. */
const swapText =
  (pairs: readonly (readonly [string, string])[]): Change =>
  (lines, draw) => {
    const [from, to] = draw.of(pairs);
    const found = lines.flatMap(({ entry }, index) => (entry.includes(from) ? [index] : []));
    return found.length === 0
      ? lines
      : edited(lines, draw.of(found), (line) => ({ ...line, entry: line.entry.replace(from, to) }));
  };

const VERDICTS = [
  ['"decision":"deny"', '"decision":"allow"'],
  ['"outcome":"deny"', '"outcome":"allow"'],
  ['"outcome":"allow"', '"outcome":"deny"'],
  ['"outcome":"denied"', '"outcome":"success"'],
  ['"outcome":"DENIED"', '"outcome":"SUCCESS"'],
  ['"outcome_reason":"denied', '"outcome_reason":"completed'],
  ['extension.not_allowed', 'extension.was_allowed'],
  ['"status":"done"', '"status":"failed"'],
] as const;
const FACTS = [
  ['2026-01-01', '2025-01-01'],
  ['"actor_id":"', '"actor_id":"x'],
  ['case-0001', 'case-0002'],
  ['"role_id":"', '"role_id":"X'],
  ['"seq":3', '"seq":4'],
  ['"kind":"proposal"', '"kind":"end"'],
] as const;

const CHANGES: Readonly<Record<string, Change>> = {
  delete: (lines, draw) => lines.toSpliced(at(lines, draw), 1 + draw.below(3)),
  duplicate: (lines, draw) => {
    const index = at(lines, draw);
    return lines.toSpliced(draw.below(lines.length + 1), 0, lines[index] ?? lines[0]!);
  },
  exchange: (lines, draw) => {
    const [one, other] = [at(lines, draw), at(lines, draw)];
    return lines.with(one, lines[other]!).with(other, lines[one]!);
  },
  truncate: (lines, draw) => lines.slice(0, draw.below(lines.length)),
  verdict: swapText(VERDICTS),
  allVerdicts: (lines) =>
    lines.map((line) => ({
      ...line,
      entry: line.entry
        .replaceAll('"outcome":"deny"', '"outcome":"allow"')
        .replaceAll('"decision":"deny"', '"decision":"allow"'),
    })),
  fact: swapText(FACTS),
  policy: (lines, draw) =>
    lines.map((line) => ({
      ...line,
      artifacts: line.artifacts.map((artifact) => {
        if (artifact.kind !== 'policy' || 'withheld' in artifact) return artifact;
        const text = Buffer.from(artifact.content, 'base64').toString();
        const swapped = draw.chance(0.5)
          ? text.replace('purpose:', 'withholds_content: true\n    purpose:')
          : text.replace('.txt', '.sh');
        return { ...artifact, content: Buffer.from(swapped).toString('base64') };
      }),
    })),
  withholdSystem: (lines, draw) =>
    edited(lines, firstWithArtifacts(lines, draw, true), (line) =>
      withheldLine(line, draw.below(4), draw.of(['lane', 'erased'])),
    ),
  withhold: (lines, draw) =>
    edited(lines, firstWithArtifacts(lines, draw, false), (line) => withheldLine(line, 0, draw.of(['lane', 'erased']))),
  withholdAll: (lines, draw) => {
    const why = draw.of(['lane', 'erased'] as const);
    return lines.map((line) => line.artifacts.reduce<Line>((all, _one, index) => withheldLine(all, index, why), line));
  },
  content: (lines, draw) =>
    edited(lines, firstWithArtifacts(lines, draw, false), (line) => ({
      ...line,
      artifacts: line.artifacts.map((artifact) =>
        'withheld' in artifact
          ? artifact
          : { ...artifact, content: Buffer.from(`${draw.below(1e9)}`).toString('base64') },
      ),
    })),
  dropContent: (lines, draw) =>
    edited(lines, firstWithArtifacts(lines, draw, draw.chance(0.3)), (line) => ({ ...line, artifacts: [] })),
  foreignContent: (lines, draw) => {
    const from = lines[firstWithArtifacts(lines, draw, draw.chance(0.5))]!;
    return edited(lines, at(lines, draw), (line) => ({ ...line, artifacts: [...line.artifacts, ...from.artifacts] }));
  },
  kind: (lines, draw) =>
    edited(lines, firstWithArtifacts(lines, draw, draw.chance(0.5)), (line) => ({
      ...line,
      artifacts: line.artifacts.map((artifact) => ({
        ...artifact,
        kind: draw.of(['raw_payload', 'result', 'policy', 'machines']),
      })),
    })),
  reserialize: (lines, draw) =>
    edited(lines, at(lines, draw), (line) => {
      const value = JSON.parse(line.entry) as Record<string, unknown>;
      const entry = draw.chance(0.5)
        ? JSON.stringify(value, null, 1)
        : canonicalJson({ ...value, seq: Number(value['seq']) + draw.below(2) });
      return { ...line, entry };
    }),
  flip: (lines, draw) =>
    edited(lines, at(lines, draw), (line) => {
      const place = draw.below(line.entry.length);
      return {
        ...line,
        entry: line.entry.slice(0, place) + String.fromCharCode(32 + draw.below(95)) + line.entry.slice(place + 1),
      };
    }),
};

function firstWithArtifacts(lines: readonly Line[], draw: Draw, isOpening: boolean): number {
  const found = lines.flatMap(({ artifacts, entry }, index) =>
    artifacts.length > 0 && entry.includes('"kind":"open"') === isOpening ? [index] : [],
  );
  return found.length === 0 ? 0 : draw.of(found);
}

/** Changes of the text as a whole, which are not signed again. */
const TEXT_CHANGES: Readonly<Record<string, (text: string, draw: Draw) => string>> = {
  byte: (text, draw) => {
    const place = draw.below(text.length);
    return text.slice(0, place) + String.fromCharCode(draw.below(128)) + text.slice(place + 1);
  },
  cut: (text, draw) => text.slice(0, draw.below(text.length)),
  joined: (text) => text + text,
  header: (text, draw) => {
    const end = text.indexOf('\n');
    const header = JSON.parse(text.slice(0, end)) as Record<string, unknown>;
    const other = draw.of([
      { ...header, from: { size: 1 + draw.below(9), frontier: ['ab'.repeat(32)] } },
      { ...header, checkpoint: String(header['checkpoint']).replace(/\n\d+\n/, `\n${draw.below(99)}\n`) },
      { ...header, key: String(header['key']).replace('redteam', 'other') },
      { ...header, more: 'x' },
    ]);
    return `${JSON.stringify(other)}${text.slice(end)}`;
  },
  longLine: (text, draw) => {
    const end = text.indexOf('\n') + 1;
    const bytes = draw.chance(0.02) ? 30_000_000 : draw.chance(0.1) ? 3_000_000 : 30_000;
    return `${text.slice(0, end)}${draw.of(['[', '{"a":', 'x', ' '])[0]!.repeat(bytes)}\n${text.slice(end)}`;
  },
  manyLines: (text, draw) => {
    const end = text.indexOf('\n') + 1;
    const line = text.slice(end, text.indexOf('\n', end) + 1);
    return `${text.slice(0, end)}${line.repeat(draw.chance(0.05) ? 3_000 : 30)}${text.slice(end)}`;
  },
  longHeader: (text, draw) => `${' '.repeat(draw.chance(0.1) ? 20_000_000 : 100_000)}${text}`,
  longEnd: (text, draw) => `${text.slice(0, -1)}${' '.repeat(draw.chance(0.1) ? 40_000_000 : 100_000)}\n`,
};

export interface MutatedBundle {
  readonly name: string;
  readonly text: string;
  /** The key that signed it: the ledger's, another operator's, or none again. */
  readonly by: 'owner' | 'stranger' | 'no key';
  readonly signing: Signing;
}

export interface BundleSigners {
  readonly signer: NoteSigner;
  readonly stranger: NoteSigner;
}

export function mutatedBundle(text: string, { signer, stranger }: BundleSigners, draw: Draw): MutatedBundle {
  if (draw.chance(0.15)) {
    const name = draw.of(Object.keys(TEXT_CHANGES));
    return { name, text: TEXT_CHANGES[name]?.(text, draw) ?? text, by: 'no key', signing: 'nothing' };
  }
  const names = Array.from({ length: 1 + draw.below(2) }, () => draw.of(Object.keys(CHANGES)));
  const whole = linesIn(text);
  const lines = names.reduce<Line[]>(
    (all, name) => (all.length === 0 ? all : (CHANGES[name]?.(all, draw) ?? all)),
    whole,
  );
  const signing = draw.of(SIGNINGS);
  const by = signing === 'nothing' ? 'no key' : draw.chance(0.8) ? 'owner' : 'stranger';
  return {
    name: names.join('+'),
    text: written(text, lines, { signing, key: by === 'stranger' ? stranger : signer }),
    by,
    signing,
  };
}

/** @throws if the changed bundle cannot be signed: then there is no case */
function written(text: string, lines: Line[], { signing, key }: { signing: Signing; key: NoteSigner }): string {
  if (signing === 'nothing') {
    const [header = ''] = text.split('\n', 1);
    const last = text.slice(text.lastIndexOf('\n', text.length - 2) + 1);
    return `${header}\n${lines.map((line) => `${JSON.stringify(line)}\n`).join('')}${last}`;
  }
  const { checkpoint } = JSON.parse(text.slice(0, text.indexOf('\n'))) as { checkpoint: string };
  if (signing === 'statement') return signedBundle(lines, key, checkpoint);
  return signedBundle(signing === 'chained' ? rechainedLines(lines) : lines, key);
}
