// The v2 session interface of SDK 0.2: runs the prompts in a new session, or in a resumed one (`params.resume`), with a
// permission callback and a hook if there is a `params.answer`.
import { params, printMessages, printNote, options, sdk } from './harness.mjs'

if (params.answer) {
  options.canUseTool = async (tool, input) => {
    printNote('request', tool)
    return { ...params.answer, updatedInput: input }
  }
  options.hooks = { PreToolUse: [{ hooks: [async input => { printNote('hook', input.tool_name); return {} }] }] }
}
const session = params.resume
  ? sdk.unstable_v2_resumeSession(params.resume, options)
  : sdk.unstable_v2_createSession(options)
async function* turns() {
  for (const prompt of params.prompts) {
    await session.send(prompt)
    yield* session.stream()
    printNote('session', session.sessionId)
  }
  session.close()
}
await printMessages(turns())
