// The adapter that the benchmarks serve: one job API, three ways of following it.

const tool = (name: string, path: string, timing: string): string => `
  ${name}:
    description: A job of the benchmark's own service.
    input:
      type: object
      additionalProperties: false
      required: [branch]
      properties:
        branch: { type: string }
        count: { type: integer, default: 1 }
    create:
      request: POST /jobs
      json: { branch: "\${{ args.branch }}", count: "\${{ args.count }}", key: "\${{ task.key }}" }
      expect: response.status == 201
      capture:
        id: response.body.id
    status:
      request: GET ${path}/\${{ job.id }}
      state:
        of: response.body.state
        working: [queued, running]
        succeeded: [done]
        failed: [failed]
      message: "\${{ response.body.step }}/\${{ response.body.steps }} steps, \${{ response.body.note }}"
    result:
      structured: { id: "\${{ response.body.id }}" }
    timing: { ${timing}, timeout: 24h, keep: 1h }`;

/** Most calls of taskferry to the upstream at once, and the clients of the bare loops it is compared with. */
export const upstreamConcurrency = 64;

/**
 * `bench_idle` is polled once an hour, so creates and reads are measured without polls; `bench_busy` is polled
 * as fast as the process can; `bench_quick` has ended at its first poll.
 */
export const adapterText = `version: 1
name: bench
description: Jobs of the benchmark's own service.
env:
  BENCH_UPSTREAM: { default: http://127.0.0.1:1 }
upstream:
  driver: http
  baseUrl: \${{ env.BENCH_UPSTREAM }}
limits: { concurrency: ${upstreamConcurrency} }
tools:${tool('bench_idle', '/jobs', 'every: 1h, max: 1h')}
${tool('bench_busy', '/jobs', 'every: 100ms, max: 100ms')}
${tool('bench_quick', '/ended', 'every: 100ms, max: 100ms')}
`;
