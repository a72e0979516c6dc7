// What waits for people, and their answer: the one place of the page that can do something. It has a right of its own,
// and what is approved is exactly what stands here, by its digest.

import { useEffect, useState } from 'preact/hooks';
import { Icon, Logo } from './icons.js';
import { JsonView } from './json-view.js';
import { isoTime, Visible } from './text.js';
import { HowToGetIn, REFUSED } from './refused.js';
import { refusalOf, type Refusal } from '../data/feed.js';
import type { Approvals, OpenApproval } from '../data/approvals.js';

type Loaded =
  { readonly open: readonly OpenApproval[] } | { readonly failed: string; readonly refusal: Refusal | null } | null;

export function ApprovalsPage({ approvals }: { readonly approvals: Approvals }) {
  const [loaded, setLoaded] = useState<Loaded>(null);
  const load = (): void => {
    approvals.open().then(
      (open) => setLoaded({ open }),
      (error: unknown) => setLoaded({ failed: wordsOf(error), refusal: refusalOf(error) }),
    );
  };
  useEffect(() => {
    load();
    return approvals.changes(load);
  }, []);
  return (
    <div class="approvals-page">
      <header class="top">
        <Logo />
        <h1>Approvals</h1>
        <span class="grow" />
        <a class="plain nav" href={`./${location.hash}`}>
          State inspector
        </a>
      </header>
      <main>
        <p class="lead">
          Each request is approved as it stands here, once, for its time. Nobody approves what he asked for himself; no
          answer is a no.
        </p>
        {loaded === null && <p class="quiet">Reading what waits…</p>}
        {loaded !== null && 'failed' in loaded && <Failed {...loaded} again={load} />}
        {loaded !== null && 'open' in loaded && loaded.open.length === 0 && (
          <p class="empty">Nothing waits for approval.</p>
        )}
        {loaded !== null &&
          'open' in loaded &&
          loaded.open.map((asked) => (
            <Asked asked={asked} approvals={approvals} load={load} key={`${asked.run_id}/${asked.digest}`} />
          ))}
      </main>
    </div>
  );
}

interface FailedProps {
  readonly failed: string;
  readonly refusal: Refusal | null;
  readonly again: () => void;
}

function Failed({ failed, refusal, again }: FailedProps) {
  return (
    <>
      <div role="alert">
        <h2>{refusal === null ? 'What waits could not be read' : REFUSED[refusal]}</h2>
        <p>{refusal === null ? failed : <HowToGetIn right="approve" />}</p>
      </div>
      <p>
        <button type="button" onClick={again}>
          Try again
        </button>
      </p>
    </>
  );
}

const wordsOf = (error: unknown): string => {
  if (refusalOf(error) === 'right') return 'this token has no right to approve.';
  return error instanceof Error ? error.message : String(error);
};

interface AskedProps {
  readonly asked: OpenApproval;
  readonly approvals: Approvals;
  readonly load: () => void;
}

function Asked({ asked, approvals, load }: AskedProps) {
  const [seen, setSeen] = useState(false);
  const { name, run_id, case_id, requested_by, requested_at, expires_at, digest, votes, quorum, approver_roles } =
    asked;
  return (
    <article aria-label={`${name} for ${run_id}`}>
      <h2>
        {name}
        <small>
          {votes.length} of {quorum} approvals
        </small>
      </h2>
      <dl class="facts wide">
        <dt>asked by</dt>
        <dd>
          <Visible text={requested_by} />
        </dd>
        <dt>run</dt>
        <dd>
          <a href={`./#run=${encodeURIComponent(run_id)}`}>{run_id}</a>
        </dd>
        <dt>case</dt>
        <dd>{case_id ?? 'none'}</dd>
        <dt>asked at</dt>
        <dd>{isoTime(Date.parse(requested_at))}</dd>
        <dt>expires</dt>
        <dd>{isoTime(Date.parse(expires_at))}</dd>
        <dt>approvers</dt>
        <dd>{approver_roles.join(', ')}</dd>
        {votes.map(({ actor_id, role_id, at }) => (
          <>
            <dt>approved by</dt>
            <dd>
              {actor_id} as {role_id}, {at}
            </dd>
          </>
        ))}
        <dt>digest</dt>
        <dd>
          <code>{digest}</code>
        </dd>
      </dl>
      <div class="request">
        <h3>What is asked</h3>
        {asked.request === null ? (
          <p class="withheld">The ledger does not show it: withheld or erased.</p>
        ) : (
          <JsonView value={asked.request} onWhole={() => setSeen(true)} />
        )}
      </div>
      <Answer asked={asked} approvals={approvals} load={load} seen={seen} />
    </article>
  );
}

const NOT_SEEN = 'Whoever answers must have seen all of it: open what is cut off above, and answer then.';
const NOT_SHOWN = 'Nobody can answer here what is not shown here. Without an answer it is a no.';

type Decision = 'approve' | 'reject';

/** Asked once more before it is sent: a vote cannot be taken back. */
function Answer({ asked, approvals, load, seen }: AskedProps & { readonly seen: boolean }) {
  const [decision, setDecision] = useState<Decision | null>(null);
  const [said, setSaid] = useState<string | null>(null);
  const send = (sent: Decision): void => {
    setDecision(null);
    approvals.vote(asked.run_id, asked.digest, sent).then(
      (votes) => {
        setSaid(votes.map(({ counted, rule_id }) => `${counted ? 'counted' : 'not counted'} (${rule_id})`).join(', '));
        load();
      },
      (error: unknown) => setSaid(wordsOf(error)),
    );
  };
  return (
    <footer>
      {!seen && <p class="unseen">{asked.request === null ? NOT_SHOWN : NOT_SEEN}</p>}
      {decision === null ? (
        <>
          <button type="button" class="yes" disabled={!seen} onClick={() => setDecision('approve')}>
            <Icon name="chain" /> Approve
          </button>
          <button type="button" class="no" disabled={!seen} onClick={() => setDecision('reject')}>
            <Icon name="close" /> Reject
          </button>
        </>
      ) : (
        <>
          <span class="strong">
            {decision === 'approve' ? 'Approve' : 'Reject'} <code>{asked.digest.slice(0, 8)}</code>? It cannot be taken
            back.
          </span>
          <button type="button" class={decision === 'approve' ? 'yes' : 'no'} onClick={() => send(decision)}>
            {decision === 'approve' ? 'Yes, approve' : 'Yes, reject'}
          </button>
          <button type="button" onClick={() => setDecision(null)}>
            Cancel
          </button>
        </>
      )}
      {said !== null && <span role="status">{said}</span>}
    </footer>
  );
}
