// The pending approvals and the vote: the only part of the page that changes anything. It needs its own right. A vote
// approves exactly the displayed request, by its digest.

import { useEffect, useState } from 'preact/hooks';
import { Icon } from './common/icons.js';
import { JsonView } from './common/json-view.js';
import { Facts, formatIsoTime, VisibleText, type Fact } from './common/text.js';
import { requestLines } from '../text/text-authors.js';
import { PageHeader, ReadFailure } from './page-header.js';
import { errorText, toAccessProblem, type AccessProblem } from '../data/feed.js';
import type { RunState } from '../../../../core/contract/run/run-context.js';
import type { ApprovalsClient, ApprovalItem, CountedVote } from '../data/approvals-client.js';

type LoadState =
  | { readonly open: readonly ApprovalItem[] }
  | { readonly failed: string; readonly refusal: AccessProblem | null }
  | null;

export function ApprovalsPage({ approvals }: { readonly approvals: ApprovalsClient }) {
  const [loaded, setLoaded] = useState<LoadState>(null);
  /** What became of the votes of this page, newest first. A request that was decided is no longer in the list. */
  const [votes, setVotes] = useState<readonly SentVote[]>([]);
  const [states, setStates] = useState<ReadonlyMap<string, RunEvent>>(new Map());
  const load = (): void => {
    approvals.list().then(
      (open) => setLoaded({ open }),
      (error: unknown) => setLoaded({ failed: problemText(error), refusal: toAccessProblem(error) }),
    );
  };
  useEffect(() => {
    load();
    return approvals.onChange(load, (run_id, state, event) =>
      setStates((before) => new Map(before).set(run_id, { state, event })),
    );
  }, []);
  return (
    <div class="approvals-page">
      <PageHeader title="Approvals" other={{ title: 'Coverage', path: 'coverage' }} />
      <main>
        <p class="lead">
          A vote is for exactly the displayed request, counts once, and expires. Requesters cannot approve their own
          requests. A request without enough votes is denied.
        </p>
        {votes.map((vote) => (
          <VoteNotice vote={vote} event={states.get(vote.run_id) ?? null} key={`${vote.run_id}/${vote.digest}`} />
        ))}
        {loaded === null && <p class="quiet">Reading the pending approvals…</p>}
        {loaded !== null && 'failed' in loaded && (
          <>
            <ReadFailure
              title="The pending approvals could not be read"
              why={loaded.failed}
              refusal={loaded.refusal}
              right="approve"
            />
            <p>
              <button type="button" onClick={load}>
                Try again
              </button>
            </p>
          </>
        )}
        {loaded !== null && 'open' in loaded && loaded.open.length === 0 && (
          <p class="empty">No approvals are pending.</p>
        )}
        {loaded !== null &&
          'open' in loaded &&
          loaded.open.map((approval) => (
            <ApprovalCard
              approval={approval}
              approvals={approvals}
              onVoted={(vote) => {
                setVotes((before) => [vote, ...before.filter(({ digest }) => digest !== vote.digest)]);
                load();
              }}
              key={`${approval.run_id}/${approval.digest}`}
            />
          ))}
      </main>
    </div>
  );
}

const problemText = (error: unknown): string =>
  toAccessProblem(error) === 'right' ? 'this token has no right to approve.' : errorText(error);

interface ApprovalProps {
  readonly approval: ApprovalItem;
  readonly approvals: ApprovalsClient;
  readonly onVoted: (vote: SentVote) => void;
}

function ApprovalCard({ approval, approvals, onVoted }: ApprovalProps) {
  const [isSeen, setSeen] = useState(false);
  const { name, run_id, votes, quorum } = approval;
  return (
    <article aria-label={`${name} for ${run_id}`}>
      <h2>
        {name}
        <small>
          {votes.length} of {quorum} approvals
        </small>
      </h2>
      <Facts facts={factsOf(approval)} wide />
      <div class="request">
        <h3>The request</h3>
        {approval.request === null ? (
          <p class="withheld">The ledger does not show it: it was withheld or erased.</p>
        ) : (
          <JsonView value={approval.request} author={requestLines(name)} onWhole={() => setSeen(true)} />
        )}
      </div>
      <VoteForm approval={approval} approvals={approvals} onVoted={onVoted} seen={isSeen} />
    </article>
  );
}

function factsOf(approval: ApprovalItem): readonly Fact[] {
  const { run_id, case_id, requested_by, requested_at, expires_at, votes, approver_roles, conditions = [] } = approval;
  return [
    ['requested by', <VisibleText text={requested_by} />],
    ['run', <a href={`./#run=${encodeURIComponent(run_id)}`}>{run_id}</a>],
    ['case', case_id ?? 'none'],
    ['requested at', formatIsoTime(Date.parse(requested_at))],
    ['expires', formatIsoTime(Date.parse(expires_at))],
    ['approvers', approver_roles.join(', ')],
    ...conditions.map(({ id, message }): Fact => [
      'asked by',
      <>
        {id}
        {message !== null && ': '}
        <VisibleText text={message ?? ''} />
      </>,
    ]),
    ...votes.map(({ actor_id, role_id, at }): Fact => ['approved by', `${actor_id} as ${role_id}, ${at}`]),
    ['digest', <code>{approval.digest}</code>],
  ];
}

/** A vote that this page has sent, and its result; `problem` if the service did not accept it. */
interface SentVote {
  readonly run_id: string;
  readonly digest: string;
  readonly name: string;
  readonly decision: VoteDecision;
  readonly votes: readonly CountedVote[];
  readonly problem: string | null;
}

interface RunEvent {
  readonly state: RunState;
  readonly event: string;
}

/** The result of a vote, and what became of the run that it decided: a promotion or export may still fail. */
function VoteNotice({ vote, event }: { readonly vote: SentVote; readonly event: RunEvent | null }) {
  const { run_id, name, decision, votes, problem } = vote;
  const isCounted = problem === null && votes.every(({ counted }) => counted);
  const isRun = name === 'export' || name === 'promotion';
  const isFailed =
    !isCounted || (isRun && decision === 'approve' && event !== null && FAILED_STATES.includes(event.state));
  return (
    <div class={`vote-notice ${isFailed ? 'h-failed' : 'h-completed'}`} role={isFailed ? 'alert' : 'status'}>
      <b class="strong">
        {problem === null
          ? votes.map(({ counted, rule_id }) => `${counted ? 'counted' : 'not counted'} (${rule_id})`).join(', ')
          : `The vote was not recorded: ${problem}`}
      </b>
      <span>
        Your {decision === 'approve' ? 'approval' : 'rejection'} of {name} for{' '}
        <a href={`./#run=${encodeURIComponent(run_id)}`}>{run_id}</a>.
      </span>
      {isCounted && isRun && event !== null && (
        <span>
          The {name} is <b class="strong">{event.state}</b>
          {event.event !== event.state && ` (${event.event})`}.
        </span>
      )}
      {isCounted && !isRun && decision === 'approve' && <span>The agent has to propose it again.</span>}
    </div>
  );
}
const FAILED_STATES: readonly RunState[] = ['failed', 'denied', 'cancelled'];

const NOT_SEEN = 'You must see the whole request before you vote: expand the shortened parts above first.';
const NOT_SHOWN = 'A request that is not shown here cannot be decided here. Without a vote it expires as denied.';

type VoteDecision = 'approve' | 'reject';

/** Asks for confirmation before it sends a vote, because a vote cannot be withdrawn. */
function VoteForm({ approval, approvals, onVoted, seen: isSeen }: ApprovalProps & { readonly seen: boolean }) {
  const [decision, setDecision] = useState<VoteDecision | null>(null);
  const send = (sent: VoteDecision): void => {
    setDecision(null);
    const { run_id, digest, name } = approval;
    const vote = { run_id, digest, name, decision: sent };
    approvals.vote(run_id, digest, sent).then(
      (votes) => onVoted({ ...vote, votes, problem: null }),
      (error: unknown) => onVoted({ ...vote, votes: [], problem: problemText(error) }),
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
    </footer>
  );
}
