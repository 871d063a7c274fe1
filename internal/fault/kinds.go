package fault

import "slices"

// kinds returns all kinds of faults. A new one is a line in one of the tables below, and
// a call of Count where a simulation strikes with it.
func kinds() []Kind {
	return slices.Concat(processes(), disks(), outsides(), receipts(), histories())
}

// by returns the simulations that strike with a fault.
func by(all ...Simulation) []Simulation { return all }

// processes are what becomes of the processes of a world.
func processes() []Kind {
	return []Kind{
		{"process killed", "a process ends at once; the next one opens what is durable", by(Worlds, Effects, Lives, Disks)},
		{"process stopped", "a process ends as after Ctrl-C", by(Lives, Kills)},
		{"process killed by SIGKILL", "a process of worldctl, at a random moment of a random command", by(Kills)},
		{"owner killed beside others", "the owner of a world, while other processes ask it for something", by(Kills)},
		{"owner's client killed", "a process that has asked the owner of a world for something", by(Kills)},
		{"killed amid a rollback", "the command that rolls back is killed", by(Kills)},
		{"killed amid a change of the rules", "the command that proposes, shadows, approves or applies is killed", by(Kills)},
		{"killed amid a snapshot", "the command that makes or prunes a snapshot is killed", by(Kills)},
		{"killed amid a copy", "the command that forks, backs up, restores, exports or imports is killed", by(Kills)},
		{"killed amid gc or archive", "the command that deletes or moves records is killed", by(Kills)},
		{"killed amid a redaction", "the command that destroys a payload is killed", by(Kills)},
		{"killed amid a rotation of keys", "the command that makes a new receipt key is killed", by(Kills)},
		{"host of a program killed", "a host, by SIGKILL, while its program reads params", by(Programs)},
		{"two processes", "another process takes the world over while one goes on, which is fenced", by(Effects)},
		{"second process refused", "another process opens the directory of a world that is open", by(Disks)},
		{"call interrupted", "whoever called does not wait for the end", by(Worlds, Lives)},
		{"replayed beyond memory", "a replay and a verification have hardly any memory, and put aside what they can", by(Worlds)},
		{"machine asleep", "the host's clock jumps by a day while attempts are under way", by(Lives)},
	}
}

// disks are what disks do.
func disks() []Kind {
	return []Kind{
		{"append refused", "the journal refuses a batch", by(Worlds, Effects)},
		{"append lost", "the journal takes a batch, fails while it is waited for, and has not kept it", by(Worlds, Effects)},
		{"append unknown", "the journal fails while a batch is waited for, and has kept it", by(Worlds)},
		{"image unreadable", "what a world has left to its last image cannot be read when it is needed", by(Worlds)},
		{"images lost", "no image of the world is there when it is opened: all is replayed", by(Effects)},
		{"image stale", "the last images are not there: the tail is longer", by(Effects)},
		{"effect store lost", "what the effect store held is gone when the world is opened", by(Effects)},
		{"effect store torn", "the file of the effect store ends in the middle of a result", by(Lives)},
		{"power cut, unsynced lost", "at any write; of no file anything is left that was not synced", by(Disks)},
		{"power cut, unsynced mixed", "at any write; of what was not synced any part is left, in any order", by(Disks)},
		{"power cut, unsynced kept", "at any write; all is left", by(Disks)},
		{"write fails", "a write is an error", by(Disks)},
		{"write torn", "half of a write is done, and the rest is an error", by(Disks)},
		{"sync fails", "a sync is an error, and what was to be synced is lost", by(Disks)},
		{"read fails", "a read is an error", by(Disks)},
		{"open fails", "a file cannot be opened, or made: too many are open", by(Disks)},
		{"rename fails", "a rename is an error", by(Disks)},
		{"remove fails", "a file cannot be removed", by(Disks)},
		{"disk full", "from some moment on nothing can be written", by(Disks)},
		{"disk dead", "from some moment on everything is an error", by(Disks)},
		{"bit flipped", "one bit of a file is another one", by(Disks)},
		{"file cut", "a file ends early", by(Disks)},
		{"file gone", "a file is not there", by(Disks)},
		{"file stale", "a file is as it was at an earlier time", by(Disks)},
		{"files swapped", "two files of a kind have each other's content", by(Disks)},
		{"sector zeroed", "512 bytes of a file are zeros", by(Disks)},
	}
}

// outsides are what the outside does, and the way to it.
func outsides() []Kind {
	return []Kind{
		{"answer late", "the outside has not answered when it is asked for the answer", by(Worlds)},
		{"answer lost", "it is done, and the answer never comes", by(Effects)},
		{"answer after the decision", "the answer comes when the attempt is given up, or decided about", by(Effects)},
		{"answer stored, nobody told", "a process ends when it has stored a result and told nobody", by(Effects)},
		{"answer twice", "the same answer is given twice", by(Effects)},
		{"answer to another attempt", "the answer to one attempt is given to another", by(Effects)},
		{"answers out of order", "of two answers the later one comes first", by(Effects)},
		{"request never left", "the attempt is given back: nothing was done", by(Effects, Lives)},
		{"connection dropped before the deed", "the sender loses the connection before the request has arrived", by(Lives, Kills)},
		{"connection dropped after the deed", "the sender loses the connection when it is done, or may be", by(Lives, Kills)},
		{"silence", "nothing is heard until the time is over", by(Lives)},
		{"slow way", "the request takes most of its time to arrive", by(Lives)},
		{"slow answer", "the answer takes its time", by(Kills)},
		{"answer cut", "the body of an answer ends early", by(Kills)},
		{"answer too large", "the body of an answer is larger than a receipt may be", by(Kills)},
		{"answer malformed", "the body of an answer is not what its type says", by(Kills)},
		{"busy", "the outside says that it is not done now, and may be tried again: 429", by(Effects, Lives, Kills)},
		{"storm of busy", "the outside says so many times in a row", by(Kills)},
		{"refused", "the outside says that it is not done", by(Effects, Lives)},
		{"halfway", "it is done, and not what was wanted", by(Lives)},
		{"verifier cannot tell", "whoever is asked whether it happened does not know", by(Effects)},
		{"verifier unavailable", "whoever is asked whether it happened cannot be reached", by(Lives, Kills)},
	}
}

// receipts are receipts that are not what they seem.
func receipts() []Kind {
	return []Kind{
		{"receipt twice", "a receipt of an attempt that has ended is offered again", by(Worlds)},
		{"receipt of nothing", "a receipt for an intent that nobody has asked for", by(Worlds)},
		{"receipt of another world", "a receipt that is signed with another world's key", by(Worlds)},
		{"receipt of another permit", "a receipt with another nonce or attempt", by(Worlds)},
		{"receipt of another kind", "a receipt for another kind of effect", by(Worlds)},
		{"receipt with a bit flipped", "one bit of a receipt is another one", by(Worlds)},
		{"receipt from elsewhere", "a good receipt comes from another hand than the host's", by(Worlds)},
	}
}

// histories are what people do to a world at bad moments.
func histories() []Kind {
	return []Kind{
		{"rollback amid effects", "a rollback while attempts are under way", by(Effects, Lives)},
		{"rollback to what was left", "a rollback leads back into a part that an earlier one left", by(Lives)},
		{"fork live amid effects", "a fork goes on with effects of its own while its parent's are under way", by(Lives)},
		{"fork on hold", "a fork asks a person about each effect", by(Worlds, Lives)},
		{"rules changed amid effects", "a manifest is applied while attempts are in doubt, awaiting a person or a backoff", by(Effects)},
		{"capability revoked", "what a cell may ask for is taken away while its intents wait", by(Effects)},
		{"budget exhausted", "no call is left while cells ask for more", by(Effects)},
		{"approval too late", "a person approves what has expired, or was decided", by(Effects)},
		{"decision without a look", "a person has it done again without looking", by(Lives)},
		{"receipt key rotated", "receipts are signed with a new key while attempts are under way", by(Effects)},
		{"step of a change lost", "the journal fails between two steps of a change of the rules", by(Worlds)},
	}
}
