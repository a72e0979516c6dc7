import { archivedText, nameInLedger } from '../../../core/contract/entry-name.js';
import type { Catalogue } from '../../../core/contract/policy/catalogue.js';
import { RunError } from '../../../core/errors.js';
import { checkPolicy, type PolicyCheck } from '../../../core/policy/files/check-policy.js';
import type { Policy } from '../../../core/policy/policy.js';
import { UNDECIDABLE, type RecordedVerdict } from '../recorded-decision.js';
import {
  FindingGroups,
  FLIP_KINDS,
  isWhole,
  simulate,
  type SimulationFinding,
  type FindingGroup,
  type FlipKind,
  type Simulation,
} from '../simulate.js';
import { rootRunIdOf } from '../../../core/contract/run/run-context.js';
import { defineCommand, type CliCommand } from '../../../interfaces/cli/command.js';
import type { OptionType } from '../../../interfaces/cli/option-types.js';
import {
  findContractFolder,
  loadContract,
  displayPath,
  requireValidPolicy,
  withLedger,
  type LoadedPolicy,
} from '../../../interfaces/cli/options/folders.js';
import { incompleteNote } from '../../../interfaces/cli/text/coverage-text.js';
import {
  countText,
  escapeText,
  jsonLine,
  createPainter,
  table,
  type TextCell,
  type Paint,
} from '../../../interfaces/cli/text/terminal.js';

const PLACES_SHOWN = 4;
const COLOURS = {
  'new-allow': 'red',
  'new-deny': 'yellow',
  stricter: 'yellow',
  'less-strict': 'red',
  'other-rule': 'cyan',
  undecidable: 'magenta',
} as const;

/** Kinds of changes, separated by commas. */
const KINDS_TYPE: OptionType<readonly FlipKind[]> = {
  takes: `${FLIP_KINDS.join(', ')} or any`,
  parse: (text) => {
    const kinds = text.split(',').map((word) => FLIP_KINDS.filter((kind) => word === 'any' || word === kind));
    return kinds.some((found) => found.length === 0) ? undefined : kinds.flat();
  },
};

/** `turnpike policy simulate`: computes recorded decisions again under another policy. */
export const policySimulate: CliCommand = defineCommand({
  name: 'policy simulate',
  access: 'read',
  summary: 'Evaluate every recorded decision again under another policy; list those that change',
  operands: { usage: '[RUN_ID]', min: 0, max: 1 },
  options: [
    {
      name: 'fail-on',
      value: 'KINDS',
      type: KINDS_TYPE,
      help: 'exit 1 for a change of these kinds: new-allow, new-deny, stricter, less-strict, other-rule; or any',
    },
  ],
  notes: [
    'The policy is that of --contract; it needs no pins. With RUN_ID, only the run tree of that run. Each decision is',
    'evaluated by itself with the recorded facts: the command does not guess what an earlier flip would have changed.',
    'A decision whose facts the ledger lacks is `undecidable`. Without such a change, exits 4 if a decision is',
    'undecidable, archived, or needs content that is not available. Needs no lock. With --json: one line per finding,',
    'then the counts.',
  ],
  async run(args, io) {
    const { failOn: kinds = [], json } = args.values;
    const contract = findContractFolder(args, io);
    const policies = new PolicyByCatalogue(await loadContract(contract, io));
    const groups = new FindingGroups(PLACES_SHOWN);
    const findings: SimulationFinding[] = [];
    const [run_id] = args.operands;
    const tree_id = run_id === undefined ? undefined : rootRunIdOf(run_id);
    const summary = await withLedger(args, io, ({ reader }) =>
      simulate(
        reader.folded,
        policies.resolve,
        (found) => (json ? void findings.push(found) : groups.add(found)),
        tree_id,
      ),
    );
    if (run_id !== undefined && summary.trees === 0)
      throw new RunError({ code: 'RUN_UNKNOWN', message: `this ledger has no run ${run_id}` });
    if (summary.decisions > 0 && summary.undecidable['policy.invalid'] === summary.decisions) policies.throwIfInvalid();
    if (json) for (const finding of findings) await io.stdout.write(jsonLine(finding));
    await io.stdout.write(
      json
        ? jsonLine(summary)
        : textOf(summary, groups.list, displayPath(contract.path, io), createPainter(io.colours)),
    );
    if (kinds.some((kind) => summary.flips[kind] > 0)) return 1;
    return isWhole(summary) ? 0 : 4;
  },
});

/** One policy, checked against the registrations of each run tree. */
class PolicyByCatalogue {
  readonly #files: LoadedPolicy['files'];
  readonly #checks = new Map<Catalogue, PolicyCheck>();
  readonly #default: PolicyCheck;

  constructor({ files, check }: LoadedPolicy) {
    this.#files = files;
    this.#default = check;
  }

  readonly resolve = (catalogue: Catalogue): Policy | null => {
    const check = this.#checks.get(catalogue) ?? checkPolicy(this.#files, catalogue);
    this.#checks.set(catalogue, check);
    return check.policy;
  };

  /** @throws PolicyError POLICY_INVALID with its findings */
  throwIfInvalid(): void {
    const checks = [...this.#checks.values(), this.#default];
    requireValidPolicy(checks.find(({ policy }) => policy === null) ?? this.#default);
  }
}

function textOf(summary: Simulation, groups: readonly FindingGroup[], where: string, paint: Paint): string {
  const { decisions, same, trees, flips } = summary;
  const undecidable = Object.values(summary.undecidable).reduce((sum, count) => sum + count, 0);
  const counts = [
    `${same} the same`,
    countText(flips['new-allow'], 'new allow'),
    `${flips['new-deny']} new ${flips['new-deny'] === 1 ? 'denial' : 'denials'}`,
    ...(flips.stricter === 0 ? [] : [`${flips.stricter} stricter`]),
    ...(flips['less-strict'] === 0 ? [] : [`${flips['less-strict']} less strict`]),
    `${flips['other-rule']} by another rule`,
    `${undecidable} undecidable`,
  ].join(', ');
  const head = `${countText(decisions, 'decision')} of ${countText(trees, 'run tree')} under ${escapeText(where)}: ${counts}\n`;
  const archived = summary.archived === undefined ? '' : `not checked: ${archivedText(summary.archived)}\n`;
  const note = `${incompleteNote(summary)}${archived}`;
  const list = groups.length === 0 ? '' : `${table([TITLES, ...groups.map(rowOf)], paint)}\n`;
  return `${list}${head}${note}`;
}

const TITLES: readonly TextCell[] = ['', '', 'role', 'lane', 'action', 'was', 'would be', 'entries'].map((text) => ({
  text,
  colour: 'bold' as const,
}));

function rowOf({ kind, count, role_id, lane_id, action, was, now, undecidable, first }: FindingGroup): TextCell[] {
  const places = first.map(({ log_index }) => nameInLedger(log_index)).join(', ');
  const more = count > first.length ? `, and ${count - first.length} more` : '';
  const would = now === null ? (undecidable === null ? '' : `? ${UNDECIDABLE[undecidable]}`) : verdictText(now);
  return [
    { text: kind, colour: COLOURS[kind] },
    { text: String(count) },
    { text: escapeText(role_id) },
    { text: escapeText(lane_id ?? '-') },
    { text: escapeText(action) },
    { text: escapeText(verdictText(was)) },
    { text: escapeText(would) },
    { text: places + more },
  ];
}

const verdictText = ({ decision, rule_id }: RecordedVerdict): string =>
  rule_id === null ? decision : `${decision} (${rule_id})`;
