#!/usr/bin/env node
// Starts taskferry. Plain old syntax: an older Node must get as far as the sentence that says what it needs.
var major = Number(process.versions.node.split('.')[0]);
if (major < 24) {
  process.stderr.write(
    'taskferry needs Node.js 24 or newer; this is ' +
      process.versions.node +
      '. In a checkout, "npm start -- ..." uses the right one, as does node_modules/.bin/node bin/taskferry.js ...\n',
  );
  process.exitCode = 1;
} else {
  import('node:fs')
    .then((fs) => {
      // A checkout runs its sources; the npm package holds only what was built.
      var source = new URL('../src/cli.ts', import.meta.url);
      return import(fs.existsSync(source) ? source.href : new URL('../dist/cli.js', import.meta.url).href);
    })
    .then((cli) => cli.main(process.argv.slice(2)));
}
