// The four APIs of the scripted model. `read` finds out how many calls a conversation holds and what it is about;
// `write` makes the response to it, whole and as events.

const born = Date.now().toString(36);
let serial = 0;
const nextId = (prefix) => `${prefix}_${born}_${++serial}`;
const textOf = (content) => (typeof content === 'string' ? content : JSON.stringify(content ?? ''));
const argumentsOf = (call) => (typeof call.input === 'string' ? call.input : JSON.stringify(call.input));

/** Anthropic Messages. */
export const MESSAGES = {
  streams: (body) => body.stream === true,
  read: (body) => ({
    hasTools: (body.tools ?? []).length > 0,
    calls: body.messages.flatMap(({ content }) => (Array.isArray(content) ? content : [])).filter(isToolUse).length,
    firstText: textOf(body.messages.find(({ role }) => role === 'user')?.content),
  }),
  write(turn, body) {
    const content = turn.calls?.map((call) => ({
      type: 'tool_use',
      id: call.id ?? nextId('toolu'),
      name: call.tool,
      input: call.input,
    })) ?? [{ type: 'text', text: turn.text }];
    const message = {
      id: nextId('msg'),
      type: 'message',
      role: 'assistant',
      model: body.model,
      stop_sequence: null,
      stop_reason: turn.calls ? 'tool_use' : 'end_turn',
      usage: { input_tokens: 10, output_tokens: 5 },
    };
    return { whole: { ...message, content }, events: messageEvents(message, content) };
  },
};

const isToolUse = (part) => part.type === 'tool_use';

function messageEvents(message, content) {
  const blocks = content.flatMap((block, index) => {
    const isTool = isToolUse(block);
    const delta = isTool
      ? { type: 'input_json_delta', partial_json: JSON.stringify(block.input) }
      : { type: 'text_delta', text: block.text };
    return [
      { type: 'content_block_start', index, content_block: isTool ? { ...block, input: {} } : { ...block, text: '' } },
      { type: 'content_block_delta', index, delta },
      { type: 'content_block_stop', index },
    ];
  });
  const { stop_reason, stop_sequence } = message;
  return [
    { type: 'message_start', message: { ...message, content: [], stop_reason: null } },
    ...blocks,
    { type: 'message_delta', delta: { stop_reason, stop_sequence }, usage: { output_tokens: 5 } },
    { type: 'message_stop' },
  ].map((event) => [event.type, event]);
}

/** OpenAI Responses. A call with `custom` has a text as its input, one with `namespace` is of such a group of tools. */
export const RESPONSES = {
  streams: (body) => body.stream === true,
  read(body) {
    const input = Array.isArray(body.input) ? body.input : [];
    return {
      hasTools: (body.tools ?? []).length > 0 || input.some(({ type }) => type === 'additional_tools'),
      calls: input.filter(({ type }) => type === 'function_call' || type === 'custom_tool_call').length,
      firstText: input.flatMap(({ role, content }) => (role === 'user' ? [textOf(content)] : [])).join('\n'),
    };
  },
  write(turn, body) {
    const output = turn.calls?.map(responseItem) ?? [
      {
        type: 'message',
        id: nextId('msg'),
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: turn.text, annotations: [] }],
      },
    ];
    const none = { input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } };
    const usage = { input_tokens: 10, output_tokens: 5, total_tokens: 15, ...none };
    const whole = { id: nextId('resp'), object: 'response', status: 'completed', model: body.model, output, usage };
    const events = [
      { type: 'response.created', response: { ...whole, status: 'in_progress', output: [] } },
      ...output.flatMap((item, output_index) => [
        { type: 'response.output_item.added', output_index, item },
        { type: 'response.output_item.done', output_index, item },
      ]),
      { type: 'response.completed', response: whole },
    ];
    return { whole, events: events.map((event) => [event.type, event]) };
  },
};

const responseItem = (call) => {
  const head = { call_id: nextId('call'), name: call.tool, status: 'completed' };
  if (call.custom) return { type: 'custom_tool_call', id: nextId('ctc'), ...head, input: argumentsOf(call) };
  const item = { type: 'function_call', id: nextId('fc'), ...head, arguments: argumentsOf(call) };
  return call.namespace === undefined ? item : { ...item, namespace: call.namespace };
};

/** OpenAI Chat Completions. */
export const CHAT = {
  streams: (body) => body.stream === true,
  read: (body) => ({
    hasTools: (body.tools ?? []).length > 0,
    calls: body.messages.flatMap(({ tool_calls }) => tool_calls ?? []).length,
    firstText: body.messages.flatMap(({ role, content }) => (role === 'user' ? [textOf(content)] : [])).join('\n'),
  }),
  write(turn, body) {
    const tool_calls = turn.calls?.map((call, index) => ({
      index,
      id: nextId('call'),
      type: 'function',
      function: { name: call.tool, arguments: argumentsOf(call) },
    }));
    const delta = { role: 'assistant', ...(tool_calls ? { tool_calls } : { content: turn.text }) };
    const head = { id: nextId('chat'), model: body.model, created: 1 };
    const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
    const finish_reason = turn.calls ? 'tool_calls' : 'stop';
    const chunk = { ...head, object: 'chat.completion.chunk' };
    return {
      whole: { ...head, object: 'chat.completion', choices: [{ index: 0, message: delta, finish_reason }], usage },
      events: [
        [null, { ...chunk, choices: [{ index: 0, delta, finish_reason: null }] }],
        [null, { ...chunk, choices: [{ index: 0, delta: {}, finish_reason }], usage }],
        [null, '[DONE]'],
      ],
    };
  },
};

/** Gemini. */
export const GEMINI = {
  streams: (_, path) => path.endsWith(':streamGenerateContent'),
  read(body) {
    const contents = body.contents ?? [];
    return {
      hasTools: (body.tools ?? []).some(({ functionDeclarations }) => (functionDeclarations ?? []).length > 0),
      calls: contents.flatMap(({ parts }) => parts ?? []).filter(({ functionCall }) => functionCall).length,
      firstText: contents.flatMap(({ role, parts }) => (role === 'user' ? [textOf(parts)] : [])).join('\n'),
      fallback: body.generationConfig?.responseMimeType === 'application/json' ? '{}' : 'ok',
    };
  },
  write(turn) {
    const parts = turn.calls?.map((call) => ({
      functionCall: { id: nextId('call'), name: call.tool, args: call.input },
    })) ?? [{ text: turn.text }];
    const whole = {
      candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }],
      usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
    };
    return { whole, events: [[null, whole]] };
  },
};

/** The names of the tools in requests of any API, and of those that a client lists to be loaded later. */
export function offeredTools(bodies) {
  const declared = bodies
    .flatMap(({ tools = [] }) => tools)
    .flatMap(({ functionDeclarations, name, function: called, type }) =>
      functionDeclarations === undefined ? [name ?? called?.name ?? type] : functionDeclarations.map((one) => one.name),
    );
  const later = JSON.stringify(bodies).matchAll(/deferred tools are now available via ToolSearch.*?:((?:\\n\w+)+)/g);
  const deferred = [...later].flatMap(([, list]) => list.split('\\n').slice(1));
  // `notes` is the server of the test.
  const own = [...declared, ...deferred].filter((name) => !/(?:^|_)notes_/.test(name));
  return [...new Set(own)].sort();
}
