import {
  diffDefinitions,
  type DefinitionsDiff,
  type StateShape,
  type Transition,
} from '../../../../kernel/replay/machines-diff.js';
import type { CliCommand } from '../../command.js';
import { findTwoDefinitions } from '../../options/recorded-machines.js';
import { escapeText, jsonLine } from '../../text/terminal.js';

/** `turnpike machines diff`: compares two versions of the machines. */
export const machinesDiff: CliCommand = {
  name: 'machines diff',
  access: 'read',
  summary: 'List the states and transitions that differ between two machine definitions',
  operands: { usage: 'A B', min: 2, max: 2 },
  options: [],
  notes: [
    'A and B each are the beginning of a hash that runs have pinned, the id of a run or session, `current` for the',
    'machines of this version, or a JSON file. Exits 0 if they are the same, and 1 if they differ.',
  ],
  async run(args, io) {
    const [a = '', b = ''] = args.operands;
    const diff = diffDefinitions(...(await findTwoDefinitions([a, b], args, io)));
    await io.stdout.write(args.flag('json') ? jsonLine(diff) : textOf(diff));
    return diff.same ? 0 : 1;
  },
};

function textOf({ same, machines, flags, others }: DefinitionsDiff): string {
  if (same) return 'the same machines\n';
  const lines = machines.flatMap(({ machine, states, transitions }) => [
    machine,
    ...states.removed.map((state) => `  - state ${stateText(state)}`),
    ...states.added.map((state) => `  + state ${stateText(state)}`),
    ...states.changed.flatMap(({ before, after }) => [
      `  ~ state ${stateText(before)}`,
      `    now   ${stateText(after)}`,
    ]),
    ...transitions.removed.map((edge) => `  - ${edgeText(edge)}`),
    ...transitions.added.map((edge) => `  + ${edgeText(edge)}`),
    ...transitions.changed.flatMap(({ before, after }) => [`  ~ ${edgeText(before)}`, `    now ${edgeText(after)}`]),
  ]);
  lines.push(...flags.removed.map((flag) => `- flag ${flag}`), ...flags.added.map((flag) => `+ flag ${flag}`));
  lines.push(...others.map((name) => `~ ${name}`));
  return lines.map((line) => `${escapeText(line)}\n`).join('');
}

const stateText = ({ name, shape }: StateShape): string => `${name} ${shape}`;

const edgeText = ({ source, event, place, target, guard, actions }: Transition): string =>
  [
    `${source} -- ${event}${place === 0 ? '' : ` (${place + 1}.)`} --> ${target ?? '(stays)'}`,
    ...(guard === null ? [] : [`if ${guard}`]),
    ...(actions.length === 0 ? [] : [`do ${actions.join(', ')}`]),
  ].join('  ');
