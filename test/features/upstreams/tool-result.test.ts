import { expect, test } from '@jest/globals';
import type { ActionFailedError } from '../../../src/core/errors.js';
import { toolExplanationOf } from '../../../src/runtime/effects/tool-explanation.js';
import { anyJsonSchema } from '../../../src/runtime/effects/convert-schema.js';
import { toToolResult } from '../../../src/features/upstreams/tool-result.js';

const SHAPE = { walked: null, structured: anyJsonSchema(), bytesMax: 10_000 };
const text = (value: string) => ({ type: 'text', text: value });
const MESSAGE = 'the tool has ended with an error of its own';

function failureOf(content: readonly object[]): ActionFailedError {
  try {
    toToolResult({ content: content as never, isError: true }, SHAPE);
  } catch (error) {
    return error as ActionFailedError;
  }
  throw new Error('it did not fail');
}

test('C94: the agent gets the first text of a server that fails, and the log does not', () => {
  const image = { type: 'image', data: 'aGk=', mimeType: 'image/png' };
  const failure = failureOf([image, text('no such account'), text('more')]);
  expect(failure).toMatchObject({
    code: 'FAILED',
    message: MESSAGE,
    partial: { content: [image, text('no such account'), text('more')], complete: true },
  });
  expect(toolExplanationOf(failure)).toBe('no such account');
  expect(String(failure.stack)).not.toContain('no such account');
});

test('without a text of the server, the agent gets the message', () => {
  expect(toolExplanationOf(failureOf([]))).toBe(MESSAGE);
});

test('an error whose message is no text has no words', () => {
  expect(toolExplanationOf(Object.assign(new Error('x'), { message: 7 as unknown as string }))).toBe('');
});
