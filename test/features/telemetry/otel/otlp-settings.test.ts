import { describe, expect, test } from '@jest/globals';
import { readOtlpSettings } from '../../../../src/features/telemetry/otel/otlp-settings.js';
import { UsageError } from '../../../../src/core/errors.js';

const NONE = { url: undefined, ratio: undefined };

describe('the settings of a collector', () => {
  test('do not exist without an option or a variable', () => {
    expect(readOtlpSettings(NONE, {})).toBeNull();
    expect(readOtlpSettings(NONE, { OTEL_EXPORTER_OTLP_ENDPOINT: '' })).toBeNull();
  });

  test('come from the option before the variables', () => {
    const environment = {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://one:4318',
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://two/traces',
    };
    expect(readOtlpSettings({ url: 'http://three:1/', ratio: undefined }, environment)).toMatchObject({
      traces: 'http://three:1/v1/traces',
      metrics: 'http://three:1/v1/metrics',
    });
    expect(readOtlpSettings(NONE, environment)).toMatchObject({
      traces: 'http://two/traces',
      metrics: 'http://one:4318/v1/metrics',
    });
  });

  test('leave out a signal, or everything, as the standard variables say', () => {
    const options = { url: 'http://a', ratio: undefined };
    expect(readOtlpSettings(options, { OTEL_TRACES_EXPORTER: 'none' })).toMatchObject({ traces: null });
    expect(readOtlpSettings(options, { OTEL_METRICS_EXPORTER: 'none' })).toMatchObject({ metrics: null });
    expect(readOtlpSettings(options, { OTEL_SDK_DISABLED: 'TRUE' })).toBeNull();
  });

  test.each([
    [{}, 0.1, true],
    [{ OTEL_TRACES_SAMPLER: 'parentbased_always_on' }, 1, true],
    [{ OTEL_TRACES_SAMPLER: 'always_on' }, 1, false],
    [{ OTEL_TRACES_SAMPLER: 'parentbased_always_off' }, 0, true],
    [{ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.25' }, 0.25, false],
    [{ OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '.5' }, 0.5, true],
  ])('sample as the variables say: %j', (environment, ratio, followsCallers) => {
    expect(readOtlpSettings({ url: 'http://a', ratio: undefined }, environment)).toMatchObject({
      ratio,
      followsCallers,
    });
    expect(readOtlpSettings({ url: 'http://a', ratio: '0.1' }, environment)).toMatchObject({ ratio: 0.1 });
  });

  test.each([
    [{ url: 'file:///etc/passwd', ratio: undefined }, {}],
    [{ url: 'not a url', ratio: undefined }, {}],
    [{ url: 'http://a', ratio: '2' }, {}],
    [{ url: 'http://a', ratio: 'half' }, {}],
    [{ url: 'http://a', ratio: undefined }, { OTEL_TRACES_SAMPLER: 'jaeger_remote' }],
    [{ url: 'http://a', ratio: undefined }, { OTEL_BSP_MAX_QUEUE_SIZE: '-1' }],
    [{ url: 'http://a', ratio: undefined }, { OTEL_BSP_SCHEDULE_DELAY: 'soon' }],
  ])('are refused if they are wrong: %j %j', (options, environment) => {
    expect(() => readOtlpSettings(options, environment)).toThrow(UsageError);
  });

  test('bound a batch by the queue', () => {
    const settings = readOtlpSettings({ url: 'http://a', ratio: undefined }, { OTEL_BSP_MAX_QUEUE_SIZE: '10' });
    expect(settings?.queue).toEqual({ spansMax: 10, batchMax: 10, intervalMs: 1_000 });
  });
});
