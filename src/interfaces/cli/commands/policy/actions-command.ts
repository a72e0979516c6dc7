import type { ActionDefinition } from '../../../../core/contract/policy/catalogue.js';
import { Proposal } from '../../../../core/contract/run/proposal.js';
import { jsonSchemaOf, SCHEMA_DOCUMENTS } from '../../../../core/contract/core-schema-documents.js';
import { InvariantError } from '../../../../core/errors.js';
import type { Policy } from '../../../../core/policy/policy.js';
import { omitUndefined } from '../../../../core/omit-undefined.js';
import { NO_OPERANDS, type CliCommand } from '../../command.js';
import {
  findContractFolder,
  loadContract,
  REGISTRATIONS_OPTION,
  readRegistrations,
  requireValidPolicy,
} from '../../options/folders.js';
import { escapeText, jsonLine, createPainter, table, type Paint } from '../../text/terminal.js';

/** `turnpike actions`: the actions that an agent may propose, with their arguments. */
export const actions: CliCommand = {
  name: 'actions',
  access: 'none',
  summary: 'List the actions that an agent may propose, with their arguments and limits',
  operands: NO_OPERANDS,
  options: [REGISTRATIONS_OPTION],
  notes: [
    'With --json, prints one object with everything that an agent must comply with: the schema of a proposal, and for',
    'each action the schema of its arguments and the file extensions that the policy allows.',
  ],
  async run(args, io) {
    const registrations = await readRegistrations(args, io);
    const policy = requireValidPolicy((await loadContract(findContractFolder(args, io), io, { registrations })).check);
    await io.stdout.write(
      args.values.json ? jsonLine(toActionsDocument(policy)) : textOf(policy, createPainter(io.colours)),
    );
    return 0;
  },
};

type ActionRule = Policy['actions'] extends ReadonlyMap<string, infer Rule> ? Rule : never;

const listAllowedActions = (policy: Policy) =>
  [...policy.actions.values()].map((rule) => {
    const definition = policy.catalogue.action(rule.action);
    if (definition === undefined) throw new InvariantError(`the policy lists ${rule.action}, which does not exist`);
    return { rule, definition };
  });

function toActionsDocument(policy: Policy): unknown {
  const listed = listAllowedActions(policy);
  const { properties, ...proposal } = findPublishedSchema('proposal') as {
    readonly properties: Record<string, unknown>;
  };
  return {
    proposal: { ...proposal, properties: { ...properties, action: { enum: listed.map(({ rule }) => rule.action) } } },
    actions: listed.map(({ rule, definition }) => ({
      action: rule.action,
      summary: definition.summary,
      risk: definition.risk,
      args: argsSchema(definition, policy),
      ...omitUndefined({ extensions: rule.extensions, lane: rule.lane }),
    })),
    limits: policy.limits,
    sandbox: policy.sandbox,
    response: findPublishedSchema(`response_${policy.exposure}`),
  };
}

/** The published schema of a built-in action, or the registered schema of a service's action. */
const argsSchema = ({ name, args }: ActionDefinition, { catalogue }: Policy): unknown =>
  catalogue.registrations.actions.some((action) => action.name === name)
    ? args
    : findPublishedSchema(`args_${name.toLowerCase()}`);

function findPublishedSchema(name: string): Readonly<Record<string, unknown>> {
  const document = SCHEMA_DOCUMENTS.find((candidate) => candidate.name === name);
  if (document === undefined) throw new InvariantError(`the contract has no schema ${name}`);
  return jsonSchemaOf(document);
}

const RISK_COLOURS = { none: 'dim', read: 'green', write: 'yellow', destructive: 'red' } as const;

function textOf(policy: Policy, paint: Paint): string {
  const rows = listAllowedActions(policy).map(({ rule, definition }) => [
    { text: rule.action, colour: 'bold' as const },
    { text: definition.risk, colour: RISK_COLOURS[definition.risk] },
    { text: Object.keys((definition.args as Partial<typeof definition.args>).properties ?? {}).join(', ') },
    { text: definition.summary },
    { text: escapeText(endingsOf(rule)), colour: 'cyan' as const },
  ]);
  const listed = (values: object) =>
    table(
      Object.entries(values).map(([name, value]) => [{ text: `  ${name}` }, { text: String(value) }]),
      paint,
    );
  return [
    `a proposal is a JSON object with exactly these members: ${Object.keys(Proposal.properties).join(', ')}\n\n`,
    table(rows, paint),
    `\nlimits of a proposal and of a run\n${listed(policy.limits)}`,
    `\nlimits of a case's sandbox\n${listed(policy.sandbox)}`,
    '\n`turnpike actions --json` prints the schemas.\n',
  ].join('');
}

const endingsOf = ({ extensions }: ActionRule): string =>
  Object.entries(extensions ?? {})
    .map(([argument, endings]) => `${argument} ends in ${endings.join(' ')}`)
    .join('; ');
