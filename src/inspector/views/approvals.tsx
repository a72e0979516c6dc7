// The pending approvals and the vote: the only part of the page that changes anything. It needs its own right. A vote
// approves exactly the displayed request, by its digest.

import { useEffect, useState } from 'preact/hooks';
import { Icon, Logo } from './common/icons.js';
import { JsonView } from './common/json-view.js';
import { formatIsoTime, VisibleText } from './common/text.js';
import { requestLines } from '../text/text-authors.js';
import { AccessHelp, ACCESS_PROBLEM_TEXTS } from './access-problem.js';
import { toAccessProblem, type AccessProblem } from '../data/feed.js';
import type { ApprovalsClient, ApprovalItem } from '../data/approvals-client.js';

type LoadState =
  | { readonly open: readonly ApprovalItem[] }
  | { readonly failed: string; readonly refusal: AccessProblem | null }
  | null;

export function ApprovalsPage({ approvals }: { readonly approvals: ApprovalsClient }) {
  const [loaded, setLoaded] = useState<LoadState>(null);
  const load = (): void => {
    approvals.list().then(
      (open) => setLoaded({ open }),
      (error: unknown) => setLoaded({ failed: errorText(error), refusal: toAccessProblem(error) }),
    );
  };
  useEffect(() => {
    load();
    return approvals.onChange(load);
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
          A vote is for exactly the displayed request, counts once, and expires. Requesters cannot approve their own
          requests. A request without enough votes is denied.
        </p>
        {loaded === null && <p class="quiet">Reading the pending approvals…</p>}
        {loaded !== null && 'failed' in loaded && <FailureNotice {...loaded} retry={load} />}
        {loaded !== null && 'open' in loaded && loaded.open.length === 0 && (
          <p class="empty">No approvals are pending.</p>
        )}
        {loaded !== null &&
          'open' in loaded &&
          loaded.open.map((approval) => (
            <ApprovalCard
              approval={approval}
              approvals={approvals}
              load={load}
              key={`${approval.run_id}/${approval.digest}`}
            />
          ))}
      </main>
    </div>
  );
}

interface FailureProps {
  readonly failed: string;
  readonly refusal: AccessProblem | null;
  readonly retry: () => void;
}

function FailureNotice({ failed, refusal, retry: again }: FailureProps) {
  return (
    <>
      <div role="alert">
        <h2>{refusal === null ? 'The pending approvals could not be read' : ACCESS_PROBLEM_TEXTS[refusal]}</h2>
        <p>{refusal === null ? failed : <AccessHelp right="approve" />}</p>
      </div>
      <p>
        <button type="button" onClick={again}>
          Try again
        </button>
      </p>
    </>
  );
}

const errorText = (error: unknown): string => {
  if (toAccessProblem(error) === 'right') return 'this token has no right to approve.';
  return error instanceof Error ? error.message : String(error);
};

interface ApprovalProps {
  readonly approval: ApprovalItem;
  readonly approvals: ApprovalsClient;
  readonly load: () => void;
}

function ApprovalCard({ approval, approvals, load }: ApprovalProps) {
  const [isSeen, setSeen] = useState(false);
  const { name, run_id, case_id, requested_by, requested_at, expires_at, digest, votes, quorum, approver_roles } =
    approval;
  return (
    <article aria-label={`${name} for ${run_id}`}>
      <h2>
        {name}
        <small>
          {votes.length} of {quorum} approvals
        </small>
      </h2>
      <dl class="facts wide">
        <dt>requested by</dt>
        <dd>
          <VisibleText text={requested_by} />
        </dd>
        <dt>run</dt>
        <dd>
          <a href={`./#run=${encodeURIComponent(run_id)}`}>{run_id}</a>
        </dd>
        <dt>case</dt>
        <dd>{case_id ?? 'none'}</dd>
        <dt>requested at</dt>
        <dd>{formatIsoTime(Date.parse(requested_at))}</dd>
        <dt>expires</dt>
        <dd>{formatIsoTime(Date.parse(expires_at))}</dd>
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
        <h3>The request</h3>
        {approval.request === null ? (
          <p class="withheld">The ledger does not show it: it was withheld or erased.</p>
        ) : (
          <JsonView value={approval.request} author={requestLines(name)} onWhole={() => setSeen(true)} />
        )}
      </div>
      <VoteForm approval={approval} approvals={approvals} load={load} seen={isSeen} />
    </article>
  );
}

const NOT_SEEN = 'You must see the whole request before you vote: expand the shortened parts above first.';
const NOT_SHOWN = 'A request that is not shown here cannot be decided here. Without a vote it expires as denied.';

type VoteDecision = 'approve' | 'reject';

/** Asks for confirmation before it sends a vote, because a vote cannot be withdrawn. */
function VoteForm({ approval, approvals, load, seen: isSeen }: ApprovalProps & { readonly seen: boolean }) {
  const [decision, setDecision] = useState<VoteDecision | null>(null);
  const [outcomeText, setOutcomeText] = useState<string | null>(null);
  const send = (sent: VoteDecision): void => {
    setDecision(null);
    approvals.vote(approval.run_id, approval.digest, sent).then(
      (votes) => {
        setOutcomeText(
          votes.map(({ counted, rule_id }) => `${counted ? 'counted' : 'not counted'} (${rule_id})`).join(', '),
        );
        load();
      },
      (error: unknown) => setOutcomeText(errorText(error)),
    );
  };
  return (
    <footer>
      {!isSeen && <p class="unseen">{approval.request === null ? NOT_SHOWN : NOT_SEEN}</p>}
      {decision === null ? (
        <>
          <button type="button" class="yes" disabled={!isSeen} onClick={() => setDecision('approve')}>
            <Icon name="chain" /> Approve
          </button>
          <button type="button" class="no" disabled={!isSeen} onClick={() => setDecision('reject')}>
            <Icon name="close" /> Reject
          </button>
        </>
      ) : (
        <>
          <span class="strong">
            {decision === 'approve' ? 'Approve' : 'Reject'} <code>{approval.digest.slice(0, 8)}</code>? It cannot be
            taken back.
          </span>
          <button type="button" class={decision === 'approve' ? 'yes' : 'no'} onClick={() => send(decision)}>
            {decision === 'approve' ? 'Yes, approve' : 'Yes, reject'}
          </button>
          <button type="button" onClick={() => setDecision(null)}>
            Cancel
          </button>
        </>
      )}
      {outcomeText !== null && <span role="status">{outcomeText}</span>}
    </footer>
  );
}
