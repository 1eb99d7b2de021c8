/** Two short, soft tones. */
export function playTone(): void {
  const context = new AudioContext()
  const volume = context.createGain()
  volume.gain.value = 0.05
  volume.connect(context.destination)
  for (const [index, frequency] of [660, 880].entries()) {
    const tone = context.createOscillator()
    tone.frequency.value = frequency
    tone.connect(volume)
    tone.start(context.currentTime + index * 0.14)
    tone.stop(context.currentTime + index * 0.14 + 0.12)
  }
  setTimeout(() => void context.close(), 1000)
}
