// Loaded into the taskferry process under test (node --import): tells the runner what that process uses.

import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';
import { answerQuestions } from './answering.ts';
import type { Memory, ProbeQuestion, Usage } from './messages.ts';

const histogram = monitorEventLoopDelay({ resolution: 1 });
let cpu = process.cpuUsage();

function usage(): Usage {
  const { user, system } = process.cpuUsage(cpu);
  const ms = (nanoseconds: number): number => nanoseconds / 1e6;
  return {
    cpuUs: user + system,
    loopP50: ms(histogram.percentile(50)),
    loopP99: ms(histogram.percentile(99)),
    loopMax: ms(histogram.max),
  };
}

async function memory(): Promise<Memory> {
  // Finalizers and what they free take some turns.
  for (let i = 0; i < 4; i++) {
    globalThis.gc?.();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const { rss, heapUsed, external } = process.memoryUsage();
  const handles: { [kind: string]: number } = {};
  for (const kind of process.getActiveResourcesInfo()) handles[kind] = (handles[kind] ?? 0) + 1;
  return { rss, heap: heapUsed, external, handles };
}

// The store's writing thread inherits --import.
if (isMainThread) {
  answerQuestions<ProbeQuestion>(async (question) => {
    switch (question.kind) {
      case 'begin':
        if (question.loop) histogram.enable();
        else histogram.disable();
        histogram.reset();
        cpu = process.cpuUsage();
        return {};
      case 'usage':
        return usage();
      case 'memory':
        return memory();
    }
  });
  process.once('disconnect', () => process.exit());
  // The channel alone must not keep a server alive that was told to stop.
  process.channel?.unref();
}
