// The tools that the scenarios of the conformance suite call, as registered tools of a service: each call is a
// CALL_TOOL proposal, and its result comes through the gateway.

import Type, { type TObject } from 'typebox';
import { ActionNotExecutedError } from '../../src/core/errors.js';
import { defineTool, type Tool } from '../../src/runtime/effects/define-effects.js';
import type { BenchOptions } from '../fixtures/bench.js';

const closed = { additionalProperties: false } as const;
const none = Type.Object({}, closed);

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=';

const text = { type: 'text', text: 'This is a simple text response for testing.' };
const image = { type: 'image', data: PNG, mimeType: 'image/png' };
const audio = { type: 'audio', data: WAV, mimeType: 'audio/wav' };
const resource = {
  type: 'resource',
  resource: { uri: 'test://embedded-resource', mimeType: 'text/plain', text: 'This is an embedded resource.' },
};

const word = Type.String();
const Block = Type.Object(
  {
    type: word,
    text: Type.Optional(word),
    data: Type.Optional(word),
    mimeType: Type.Optional(word),
    resource: Type.Optional(Type.Object({ uri: word, mimeType: word, text: word }, closed)),
  },
  closed,
);
const Content: TObject = Type.Object({ content: Type.Array(Block) }, closed);

const answering = (name: string, content: readonly object[]): Tool =>
  defineTool({
    name,
    summary: `Of the conformance suite: ${name}.`,
    input: none,
    output: Content,
    run: () => ({ content }),
  });

export const SCENARIO_TOOLS: readonly Tool[] = [
  answering('test_simple_text', [text]),
  answering('test_image_content', [image]),
  answering('test_audio_content', [audio]),
  answering('test_embedded_resource', [resource]),
  answering('test_multiple_content_types', [text, image, resource]),
  defineTool({
    name: 'test_error_handling',
    summary: 'Of the conformance suite: a tool that fails.',
    input: none,
    output: none,
    run: () => {
      throw new ActionNotExecutedError('this tool intentionally fails', { retryable: false });
    },
  }),
];

/** The shipped policy, with a lane that lists them. */
export const scenarioEdit: NonNullable<BenchOptions['edit']> = (name, source) => {
  switch (name) {
    case 'lanes':
      return `${source}
  - lane_id: CONFORMANCE
    purpose: The tools of the conformance suite.
    allowed_callers: { roles: [CONFORMANCE_AGENT] }
    allowed_actions:
      tools: [${SCENARIO_TOOLS.map(({ definition }) => definition.name).join(', ')}]
    scope: { requires: [case_id, run_id], prohibits: [] }
    audit: { required: true, level: full }
`;
    case 'roles':
      return `${source}
  - role_id: CONFORMANCE_AGENT
    description: The client of the conformance suite.
    class: agent
    privileges: { lanes: [CONFORMANCE] }
`;
    case 'actions':
      return source.replace('  - action: CREATE_DIRECTORY', '  - action: CREATE_DIRECTORY\n  - action: CALL_TOOL');
  }
};

export const CONFORMANCE_AGENT = { lane: 'CONFORMANCE', role: 'CONFORMANCE_AGENT' } as const;
