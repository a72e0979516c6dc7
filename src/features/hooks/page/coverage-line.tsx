// How the calls of a coding agent were covered, on the page of the inspector.

import { useMemo } from 'preact/hooks';
import { useStore, type AddedRunView } from '../../../interfaces/inspector/page/views/common/context.js';
import { VisibleText } from '../../../interfaces/inspector/page/views/common/text.js';
import { coverageText, missingComparisonTexts, REPOSITORY_SINCE } from '../comparisons/call-coverage.js';
import { countCoverage } from './count-coverage.js';

/** For a session of a coding agent: its client, its calls, what is known of their outcomes, and the gaps. */
export const CoverageLine: AddedRunView = ({ run }) => {
  const store = useStore();
  const { at } = store.cursor.value;
  const root = store.runs.get(run.tree);
  const main = root?.children.map((key) => store.rows.creations.get(key)).find((creation) => creation?.client);
  const end = Math.min(at, store.runs.lastOfTree(run.tree));
  const coverage = useMemo(
    () => (root === null || main === undefined ? null : countCoverage(store.rows, store.runs, root, end)),
    [store.rows, store.runs, root, main, end],
  );
  if (coverage === null || !main?.client) return null;
  const { name, version, session, uncompared } = main.client;
  const missing = [...missingComparisonTexts(uncompared), REPOSITORY_SINCE];
  return (
    <p class="coverage" role="note" data-revision={store.revision.value}>
      <b>{name}</b> {version} session <VisibleText text={session} />: {coverageText(coverage, missing)}
    </p>
  );
};
