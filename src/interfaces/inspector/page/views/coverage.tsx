// How often each element of the pinned policies decided, and what never did.

import { useEffect, useState } from 'preact/hooks';
import { Checkbox, VisibleText } from './common/text.js';
import { PageHeader, ReadFailure } from './page-header.js';
import { errorText, toAccessProblem } from '../data/feed.js';
import type { HttpFeed } from '../data/http-feed.js';
import type { CoverageReport } from '../../../../core/contract/inspection/inspection.js';

type LoadState = CoverageReport | { readonly error: unknown } | null;
type Policy = CoverageReport['policies'][number];

const HASH_CHARS = 12;

export function CoveragePage({ feed }: { readonly feed: HttpFeed }) {
  const [loaded, setLoaded] = useState<LoadState>(null);
  const [isNeverOnly, setNeverOnly] = useState(false);
  useEffect(() => {
    feed
      .request('/inspector/coverage')
      .then((answer) => answer.json() as Promise<CoverageReport>)
      .then(setLoaded, (error: unknown) => setLoaded({ error }));
  }, []);
  return (
    <div class="approvals-page">
      <PageHeader title="Coverage" other={{ title: 'Approvals', path: 'approvals' }} />
      <main>
        <p class="lead">
          How often each element of policy decided. A check that passed has not decided, so a prohibition that never
          decided may still be needed.
        </p>
        {loaded === null && <p class="quiet">Counting the decisions…</p>}
        {loaded !== null && 'error' in loaded && (
          <ReadFailure
            title="The decisions could not be counted"
            why={errorText(loaded.error)}
            refusal={toAccessProblem(loaded.error)}
          />
        )}
        {loaded !== null && 'policies' in loaded && (
          <>
            <p>
              Entries {loaded.from} to {loaded.to}
              {loaded.not_recomputed > 0 && `; ${loaded.not_recomputed} run trees only in part`}.{' '}
              <Checkbox label="only what never decided" checked={isNeverOnly} onChange={setNeverOnly} />
            </p>
            {loaded.policies.length === 0 && <p class="empty">Nothing was decided.</p>}
            {loaded.policies.map((policy) => (
              <PolicyTable policy={policy} neverOnly={isNeverOnly} key={Object.values(policy.files).join()} />
            ))}
          </>
        )}
      </main>
    </div>
  );
}

function PolicyTable({ policy, neverOnly }: { readonly policy: Policy; readonly neverOnly: boolean }) {
  const { files, decisions, trees, elements, other } = policy;
  const never = elements.filter(({ allowed, denied }) => allowed + denied === 0);
  return (
    <article tabIndex={0} aria-label="Decisions of a policy">
      <h2>
        {decisions} decisions of {trees} run trees
        <small>
          {never.length} of {elements.length} elements never decided
        </small>
      </h2>
      <p class="quiet">
        {Object.entries(files)
          .map(([name, hash]) => `${name} ${hash.slice(0, HASH_CHARS)}`)
          .join(', ')}
      </p>
      <table>
        <thead>
          <tr>
            {['kind', 'lane', 'element', 'allowed', 'denied'].map((title) => (
              <th scope="col" key={title}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {(neverOnly ? never : elements).map(({ kind, lane_id, name, allowed, denied }) => (
            <tr key={`${kind} ${lane_id} ${name}`}>
              <td>{kind.replace('_', ' ')}</td>
              <td>{lane_id ?? ''}</td>
              <td>
                <VisibleText text={name} />
              </td>
              <td>{allowed}</td>
              <td>{allowed + denied === 0 ? <b class="strong">never decided</b> : denied}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {other.length > 0 && (
        <p class="quiet">
          By no element:{' '}
          {other.map(({ rule_id, allowed, denied }) => `${allowed + denied} by ${rule_id ?? 'no rule'}`).join(', ')}
        </p>
      )}
    </article>
  );
}
