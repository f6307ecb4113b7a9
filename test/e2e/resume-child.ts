// A client process of its own that picks up a task it only knows by reference: prints the outcome as JSON.
//
//   node resume-child.ts URL REFERENCE

import { connectTaskClient } from '../../demo/task-client.ts';

const [url = '', reference = ''] = process.argv.slice(2);
const { session, close } = await connectTaskClient(url);
const execution = await session.resumeTask(JSON.parse(reference));
const { outcome } = await execution.settle();
console.log(
  JSON.stringify({
    status: outcome.status,
    result: outcome.status === 'completed' ? outcome.result : undefined,
  }),
);
await close();
