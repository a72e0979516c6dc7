// A service with an OpenTelemetry SDK of its own, registered with the API: Turnpike continues its traces.

import { afterEach, expect, test } from '@jest/globals';
import { context, metrics, ROOT_CONTEXT, trace, type Context, type ContextManager } from '@opentelemetry/api';
import { TracerProvider, type ReadableSpan } from '@opentelemetry/sdk-trace';
import { AsyncLocalStorage } from 'node:async_hooks';
import { otelTelemetry } from '../../../../src/features/telemetry/otel/index.js';
import { Bench } from '../../../fixtures/bench.js';
import { CASE_AGENT, service, serviceEdit } from '../../../fixtures/service.js';
import { proposal } from '../../../interfaces/http/http-harness.js';

afterEach(() => {
  trace.disable();
  metrics.disable();
  context.disable();
});

/** As the context manager that every Node SDK registers. */
class AsyncContexts implements ContextManager {
  readonly #storage = new AsyncLocalStorage<Context>();
  active = (): Context => this.#storage.getStore() ?? ROOT_CONTEXT;
  with: ContextManager['with'] = (now, work, self, ...args) =>
    this.#storage.run(now, () => work.call(self as never, ...args));
  bind: ContextManager['bind'] = (_now, target) => target;
  enable = (): this => this;
  disable = (): this => this;
}

test('a tree belongs to the active span of the code that starts it, and its tool runs in the span of the effect', async () => {
  const spans: ReadableSpan[] = [];
  const done = (): Promise<void> => Promise.resolve();
  const collect = { onStart: () => undefined, onEnd: (span: ReadableSpan) => void spans.push(span) };
  const provider = new TracerProvider({ spanProcessors: [{ ...collect, forceFlush: done, shutdown: done }] });
  trace.setGlobalTracerProvider(provider);
  context.setGlobalContextManager(new AsyncContexts());
  const made = service();
  const bench = await Bench.open({ ...made, edit: serviceEdit, telemetry: otelTelemetry() });
  const own = provider.getTracer('service');
  const handled = own.startSpan('handle a request');
  await context.with(trace.setSpan(ROOT_CONTEXT, handled), async () => {
    const agent = await bench.turnpike.startAgent(CASE_AGENT);
    await agent.submit(proposal('CALL_TOOL', { tool: 'billing.charge', input: { amount: 1 } }));
    await agent.end();
  });
  handled.end();
  await bench.close();
  const { traceId, spanId } = handled.spanContext();
  expect(new Set(spans.map((span) => span.spanContext().traceId))).toEqual(new Set([traceId]));
  const found = (name: string): ReadableSpan | undefined => spans.find((span) => span.name === name);
  expect(found('invoke_agent CASE_AGENT')?.parentSpanContext?.spanId).toBe(spanId);
  const step = found('turnpike.step')?.spanContext().spanId;
  const effect = found('execute_tool billing.charge');
  expect(effect?.parentSpanContext?.spanId).toBe(step);
  expect(made.world.calls[0]?.trace?.traceparent).toBe(`00-${traceId}-${effect?.spanContext().spanId ?? ''}-01`);
});

test('without an SDK of the service, the API does nothing, and a run goes on', async () => {
  const bench = await Bench.open({ telemetry: otelTelemetry() });
  const agent = await bench.turnpike.startAgent();
  expect(await agent.submit(proposal('THINK'))).toMatchObject({ outcome: 'SUCCESS' });
  await agent.end();
  await bench.close();
});
