(* SPDX-License-Identifier: Apache-2.0 *)
(* Throws and catches all the time: in line, by the runtime, from C and in a callback. The collector is called between handlers. *)

exception Stop of int
exception Fast

let rec down n x = if n = 0 then raise (Stop x) else 1 + down (n - 1) (x + 1)
let rec fast n a b = if n = 0 then raise_notrace Fast else fast (n - 1) b a + a
let caught n = try down n 1 with Stop x -> x
let caught_fast n = try fast n 2 3 with Fast -> n
let again n = try (try down n 3 with Stop x when x < 0 -> x) with Stop x -> x
let parsed s = try int_of_string s with Failure _ -> 7

(* The collector calls the finaliser. *)
let called_back n = try Gc.finalise (fun _ -> ignore (caught n)) (ref n); Gc.minor (); 1 with Stop x -> x

let[@inline never] collected n =
  try
    try
      let l = List.init n (fun i -> Some i) in
      let pair = Some (l, n) in
      match pair with Some (l, n) when n > 0 -> List.length l | _ -> raise Exit
    with Not_found -> 1
  with Exit -> 2

let () =
  let sum = ref 0 in
  print_endline "ready";
  while !sum >= 0 do
    for i = 1 to 100 do
      let n = i land 7 in
      sum := (!sum + caught n + caught_fast n + again n + parsed "x" + collected n) land 0xffff
    done;
    sum := (!sum + called_back 3) land 0xffff
  done
