// Harness of the node scripts: loads the SDK version under test and the parameters of the test. A script prints one
// JSON line for each message of the SDK and for each note of its own.

const modulesDir = process.env.SDK_MODULES
export const sdk = await import(`${modulesDir}/@anthropic-ai/claude-agent-sdk/sdk.mjs`)
export const { z } = await import(`${modulesDir}/zod/index.js`)

// Parameters of the test; `options` are passed to the SDK.
export const params = JSON.parse(process.argv[2])
export const options = { pathToClaudeCodeExecutable: process.env.ENGINE, cwd: process.cwd(), ...params.options }

const print = line => process.stdout.write(JSON.stringify(line) + '\n')

export const printNote = (name, value) => print({ note: name, value: value ?? null })

// A prompt in the form of streaming input.
export const prompt = text => ({ type: 'user', session_id: '', parent_tool_use_id: null, message: { role: 'user', content: text } })

// Prints every message of a query and passes it to a listener, then exits. An error of the SDK is noted.
export async function printMessages(query, listener = () => {}) {
  try {
    for await (const message of query) {
      print({ message })
      if ((await listener(message)) === 'leave') break
    }
    printNote('ended')
  } catch (error) {
    printNote('error', `${error.name}: ${error.message}`)
  }
  // Exit explicitly: after its last message, SDK 0.2 keeps a timer running for five seconds.
  process.stdout.write('', () => process.exit())
}

// Streaming input that stays open until closed.
export function openInput(...first) {
  const waiting = [...first]
  let wake = () => {}
  let open = true
  return {
    push: text => { waiting.push(text); wake() },
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
