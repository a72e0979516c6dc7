// There is one way by which content leaves the ledger: `ContentReader`, for an audience. Who may read the store itself
// is a list; each file has the reason why what it reads goes to no one.

import { expect, test } from '@jest/globals';
import ts from 'typescript';
import { filesIn, isOfPage, nodesOf, parse } from './sources.js';

/** Reads of content: of a store, of what stands for one, and of a ledger for folding. */
const READS: ReadonlySet<string> = new Set(['artifact', 'artifactsOf', 'histories', 'folded', 'systemArtifact']);

/** The function of the kernel that reads for those who fold. */
const READS_TO_FOLD = 'readContentToFold';

const READERS: Readonly<Record<string, string>> = {
  'src/runtime/content/content-reader.ts': 'the one way',
  'src/runtime/content/lane-withholding.ts': 'decides what is withheld; the bundle of a ledger is written through it',
  'src/runtime/content/withheld-lanes.ts': 'reads pinned policies',
  'src/runtime/ledger/joined-log.ts': 'hands a store on to the verification of a ledger with its archives',
  'src/runtime/ledger/open-evidence.ts': 'hands an opened file on to its verification',
  'src/features/evidence/write-evidence.ts': 'writes what it is given: `withheldByLanes`, or for an archive the ledger',
  'src/features/promotions/high-risk-runs.ts': 'asks whether a source is there, and takes its size',
  'src/runtime/case/case-label.ts': 'decides the label of a case',
  'src/features/promotions/content-search.ts': 'decides whether a promotion carries text over',
  'src/features/models/run-agent.ts': 'reads the proposals and responses of the run for its own agent',
  'src/features/models/agent-schemas.ts': 'reads the policy and machine definitions of the platform',
  'src/runtime/ledger/count-reads.ts': 'counts what code with a reader of its own reads, and looks at nothing',
  'src/runtime/ledger/ledger-reader.ts': 'gives everyone what `ContentReader` shows, and folding code the rest',
  'src/runtime/ledger/watch-ledger.ts': 'folds; the kernel withholds what inspectors are shown',
  'src/runtime/effects/ledger-registrations.ts': 'reads schemas of registered tools, which lanes never withhold',
  'src/engine/trees/completed-step.ts': 'makes the response of a repeated proposal, for the agent of the run',
  'src/engine/trees/snapshots.ts': 'reads the pinned policy to restore a tree',
  'src/engine/trees/fold-trees.ts': 'folds',
  'src/runtime/ledger/integrated-log.ts': 'hands a store on',
  'src/core/ledger/verification/verify-ledger.ts': 'verifies hashes',
  'src/kernel/fold.ts': 'reads for those who fold',
  'src/kernel/replay/history.ts': 'folds',
  'src/features/simulation/decision-fold.ts': 'folds',
  'src/features/simulation/policy-coverage.ts': 'folds, and hashes pinned policies',
  'src/kernel/replay/check-replay.ts': 'folds',
  'src/kernel/replay/replay.ts': 'folds',
  'src/interfaces/replay/jest-matchers.ts': 'folds',
  'src/kernel/replay/course-cache.ts': 'folds',
  'src/interfaces/cli/commands/ledger/replay-command.ts': 'hands a ledger on to its replay',
  'src/interfaces/cli/commands/ledger/machines-diff-command.ts': 'reads machine definitions of the platform',
  'src/features/simulation/commands/policy-simulate-command.ts': 'folds',
  'src/features/simulation/commands/policy-explain-command.ts': 'folds',
  'src/interfaces/http/routes/ledger-audit.ts': 'reads hashes, as everyone may have them',
  'src/interfaces/http/routes/ledger-routes.ts': 'asks the inspector, which shows what everyone may have',
  'src/interfaces/inspector/ledger-view.ts': 'gives folding code all content, and views what everyone may have',
  'src/interfaces/inspector/chart-cache.ts': 'reads machine definitions of the platform',
  'src/features/sessions/views/past-sessions.ts': 'asks which content is gone',
  'src/interfaces/inspector/step-story.ts': 'reads the pinned policy',
  'src/interfaces/inspector/render-one-file.ts': 'asks the inspector, which shows what everyone may have',
};

/** Who may make an audience that gets withheld content. */
const AUDIENCES: Readonly<Record<string, readonly string[]>> = {
  approverAudience: ['src/runtime/ledger/pending-approvals.ts'],
  exportAudience: ['src/features/exports/export-effects.ts'],
};

/** What a person is shown because they may approve it, and what is written without what lanes withhold. */
const PERSONS: Readonly<Record<string, readonly string[]>> = {
  approval: ['src/interfaces/http/routes/approval-routes.ts', 'src/runtime/content/read-content.ts'],
  approvals: ['src/features/promotions/commands/approvals-command.ts', 'src/interfaces/http/routes/approval-routes.ts'],
};

/** The stores are what is read; the page is browser code, and asks the service. */
const FILES = filesIn('src', /\.tsx?$/).filter(
  (path) => !isOfPage(path) && !/^src\/(?:stores|engine\/ports)\//.test(path),
);
const MADE_IN = 'src/runtime/content/audience.ts';

/** The reads of content in a source, by their names. `artifact` alone is also what a pin names, and no call then. */
const readsIn = (source: ts.SourceFile): readonly string[] =>
  nodesOf(source).flatMap((node) => {
    if (ts.isBindingElement(node)) {
      const { text } = (node.propertyName ?? node.name) as ts.Identifier;
      return READS.has(text) && text !== 'artifact' ? [text] : [];
    }
    if (ts.isCallExpression(node) && node.expression.getText(source) === READS_TO_FOLD) return [READS_TO_FOLD];
    if (!ts.isPropertyAccessExpression(node) || !READS.has(node.name.text)) return [];
    const { text } = node.name;
    const isCall = ts.isCallExpression(node.parent) && node.parent.expression === node;
    if (text === 'artifact' && !isCall) return [];
    if (text === 'folded' && !/(?:ledger|reader|source)$/i.test(node.expression.getText(source))) return [];
    return [text];
  });

test('S4-62: only the listed files read content from a store, and each of them still does', () => {
  const found = FILES.filter((path) => readsIn(parse(path)).length > 0);
  expect(found).toEqual(Object.keys(READERS).sort());
});

test('S4-62: an audience that gets withheld content is made by the code that decides on it', () => {
  for (const [name, makers] of Object.entries(AUDIENCES)) {
    const users = FILES.filter((path) => path !== MADE_IN).filter((path) =>
      nodesOf(parse(path)).some((node) => ts.isIdentifier(node) && node.text === name),
    );
    expect([name, users]).toEqual([name, makers]);
  }
});

test('S4-62: a request is read for a person in the listed files, which record the reading', () => {
  for (const [name, readers] of Object.entries(PERSONS)) {
    const isOfLedger = (path: string): boolean =>
      nodesOf(parse(path)).some(
        (node) =>
          ts.isCallExpression(node) &&
          ts.isPropertyAccessExpression(node.expression) &&
          node.expression.name.text === name &&
          /(?:ledger|reader)$/i.test(node.expression.expression.getText()),
      );
    expect([name, FILES.filter(isOfLedger)]).toEqual([name, readers]);
  }
});

test('S4-62: a planted reader is found', () => {
  const planted =
    'const { histories } = store; const bytes = await store.artifact(null, hash); show(ledger.folded, pin.artifact); ' +
    'await readContentToFold(entry, other);';
  const source = ts.createSourceFile('planted.ts', planted, ts.ScriptTarget.Latest, true);
  expect(readsIn(source)).toEqual(['histories', 'artifact', 'folded', READS_TO_FOLD]);
});
