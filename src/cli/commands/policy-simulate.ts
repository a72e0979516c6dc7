import type { Catalogue } from '../../contract/catalogue.js';
import { RunError } from '../../errors.js';
import { checkPolicy, type PolicyCheck } from '../../policy/check-policy.js';
import type { Policy } from '../../policy/policy.js';
import { UNDECIDABLE, type Said } from '../../replay/policy/decision.js';
import {
  FindingGroups,
  FLIP_KINDS,
  simulate,
  type Finding,
  type FindingGroup,
  type FlipKind,
  type Simulation,
} from '../../replay/policy/simulate.js';
import { rootOf } from '../../runtime/ledger-reader.js';
import { wrong } from '../arguments.js';
import type { Args, Command } from '../command.js';
import { contractOf, loadContract, shownPath, soundPolicy, withLedger, type LoadedPolicy } from '../folders.js';
import { counted, escaped, jsonLine, painter, table, type Cell, type Paint } from '../terminal.js';

const PLACES_SHOWN = 4;
const COLOURS = { 'new-allow': 'red', 'new-deny': 'yellow', 'other-rule': 'cyan', undecidable: 'magenta' } as const;

/** `turnpike policy simulate`: what would have been decided under another policy? */
export const policySimulate: Command = {
  name: 'policy simulate',
  summary: 'Take every recorded decision again under a policy; show which come out otherwise',
  operands: { usage: '[RUN_ID]', min: 0, max: 1 },
  options: [
    {
      name: 'fail-on',
      value: 'KINDS',
      help: 'exit 1 at such a flip: new-allow, new-deny, other-rule (by comma), or any',
    },
  ],
  notes: [
    'The policy is that of --contract; pins are not asked for. With RUN_ID, of the run tree that the run belongs to. Each',
    'decision is taken by itself, with the facts that were recorded: what an earlier flip would have changed is not guessed.',
    'What the ledger does not tell is `undecidable`. Needs no lock. With --json: one line for each finding, then the counts.',
  ],
  async run(args, io) {
    const kinds = kindsIn(args);
    const contract = contractOf(args, io);
    const policies = new PoliciesOver(await loadContract(contract, io));
    const groups = new FindingGroups(PLACES_SHOWN);
    const findings: Finding[] = [];
    const json = args.flag('json');
    const [run_id] = args.operands;
    const tree_id = run_id === undefined ? undefined : rootOf(run_id);
    const told = await withLedger(args, io, ({ reader }) =>
      simulate(
        reader.folded,
        policies.over,
        (found) => (json ? void findings.push(found) : groups.add(found)),
        tree_id,
      ),
    );
    if (run_id !== undefined && told.trees === 0)
      throw new RunError({ code: 'RUN_UNKNOWN', message: `this ledger has no run ${run_id}` });
    if (told.decisions > 0 && told.undecidable['policy.invalid'] === told.decisions) policies.refuse();
    if (json) for (const finding of findings) await io.stdout.write(jsonLine(finding));
    await io.stdout.write(
      json ? jsonLine(told) : textOf(told, groups.list, shownPath(contract.path, io), painter(io.colours)),
    );
    return kinds.some((kind) => told.flips[kind] > 0) ? 1 : 0;
  },
};

/** @throws UsageError for what is no kind of flip */
function kindsIn(args: Args): readonly FlipKind[] {
  const text = args.text('fail-on');
  if (text === undefined) return [];
  return text.split(',').flatMap((word) => {
    if (word === 'any') return FLIP_KINDS;
    const kind = FLIP_KINDS.find((known) => known === word);
    if (kind === undefined) throw wrong(policySimulate, `--fail-on takes ${FLIP_KINDS.join(', ')} or any`);
    return [kind];
  });
}

/** One policy over what each run tree has registered. */
class PoliciesOver {
  readonly #files: LoadedPolicy['files'];
  readonly #checks = new Map<Catalogue, PolicyCheck>();
  readonly #without: PolicyCheck;

  constructor({ files, check }: LoadedPolicy) {
    this.#files = files;
    this.#without = check;
  }

  readonly over = (catalogue: Catalogue): Policy | null => {
    const check = this.#checks.get(catalogue) ?? checkPolicy(this.#files, catalogue);
    this.#checks.set(catalogue, check);
    return check.policy;
  };

  /** @throws PolicyError POLICY_INVALID with what is wrong with it */
  refuse(): void {
    const checks = [...this.#checks.values(), this.#without];
    soundPolicy(checks.find(({ policy }) => policy === null) ?? this.#without);
  }
}

function textOf(told: Simulation, groups: readonly FindingGroup[], where: string, paint: Paint): string {
  const { decisions, same, trees, flips } = told;
  const undecidable = Object.values(told.undecidable).reduce((sum, count) => sum + count, 0);
  const counts = [
    `${same} the same`,
    counted(flips['new-allow'], 'new allow'),
    `${flips['new-deny']} new ${flips['new-deny'] === 1 ? 'denial' : 'denials'}`,
    `${flips['other-rule']} by another rule`,
    `${undecidable} undecidable`,
  ].join(', ');
  const head = `${counted(decisions, 'decision')} of ${counted(trees, 'run tree')} under ${escaped(where)}: ${counts}\n`;
  const note =
    told.not_recomputed === 0
      ? ''
      : `note: ${counted(told.not_recomputed, 'run tree')} only in part: content that decisions rest on is not to be had\n`;
  const list = groups.length === 0 ? '' : `${table([TITLES, ...groups.map(rowOf)], paint)}\n`;
  return `${list}${head}${note}`;
}

const TITLES: readonly Cell[] = ['', '', 'role', 'lane', 'action', 'was', 'would be', 'entries'].map((text) => ({
  text,
  colour: 'bold' as const,
}));

function rowOf({ kind, count, role_id, lane_id, action, was, now, undecidable, first }: FindingGroup): Cell[] {
  const places = first.map(({ log_index }) => String(log_index)).join(', ');
  const more = count > first.length ? `, and ${count - first.length} more` : '';
  const would = now === null ? (undecidable === null ? '' : `? ${UNDECIDABLE[undecidable]}`) : shown(now);
  return [
    { text: kind, colour: COLOURS[kind] },
    { text: String(count) },
    { text: escaped(role_id) },
    { text: escaped(lane_id ?? '-') },
    { text: escaped(action) },
    { text: escaped(shown(was)) },
    { text: escaped(would) },
    { text: places + more },
  ];
}

const shown = ({ decision, rule_id }: Said): string => (rule_id === null ? decision : `${decision} (${rule_id})`);
