// The stage of one node script: the SDK of the version under test, what the test asks for, and the way back to it.
// A script prints one JSON line for each message of the SDK and for each note of its own.

const folder = process.env.SDK_FOLDER
export const sdk = await import(`${folder}/@anthropic-ai/claude-agent-sdk/sdk.mjs`)
export const { z } = await import(`${folder}/zod/index.js`)

// What the test asks for; `options` go to the SDK.
export const asked = JSON.parse(process.argv[2])
export const options = { pathToClaudeCodeExecutable: process.env.ENGINE, cwd: process.cwd(), ...asked.options }

const print = line => process.stdout.write(JSON.stringify(line) + '\n')

export const note = (name, value) => print({ note: name, value: value ?? null })

// A prompt as streaming input wants it.
export const prompt = text => ({ type: 'user', session_id: '', parent_tool_use_id: null, message: { role: 'user', content: text } })

// Prints every message of a query and shows it to a listener; then the script is over. What the SDK throws is a note, too.
export async function follow(query, listener = () => {}) {
  try {
    for await (const message of query) {
      print({ message })
      if ((await listener(message)) === 'leave') break
    }
    note('ended')
  } catch (error) {
    note('thrown', `${error.name}: ${error.message}`)
  }
  // Not left to node: after its last message the SDK 0.2 keeps a timer running for five seconds.
  process.stdout.write('', () => process.exit())
}

// Streaming input that stays open until it is closed.
export function openInput(...first) {
  const waiting = [...first]
  let wake = () => {}
  let open = true
  return {
    say: text => { waiting.push(text); wake() },
    close: () => { open = false; wake() },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        while (waiting.length) yield prompt(waiting.shift())
        if (!open) return
        await new Promise(resolve => { wake = resolve })
      }
    },
  }
}
